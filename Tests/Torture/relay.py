"""Stands between a server and everybody who talks to it, and passes bytes on: late, not at all, or without their answer. It
knows nothing of what they mean but where to look for the one request whose answer is to be lost."""

import random
import select
import socket
import threading
import time


class Relay:
    """One port that passes everything on to whatever `target()` connects to."""

    CHUNK = 65_536
    # After the first bytes of an answer that is to be lost, the server gets so long to have done what it was asked for.
    LOST_SECONDS = 0.05

    def __init__(self, target):
        """`target()` answers a connected socket, or None: the relay is there before the server is."""
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        self.connections = set()
        self.lock = threading.Lock()
        self.delay = 0.0
        self.is_cut = False
        self.marks = None
        self.lost = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        try:
            server = None if self.is_cut else self.target()
        except OSError:
            server = None
        if server is None:
            client.close()
            return
        for end in (client, server):
            end.settimeout(None)
            if end.family == socket.AF_INET:
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(client, server)
        with self.lock:
            self.connections.add(connection)
        for source, sink in ((client, server), (server, client)):
            threading.Thread(target=self._pump, args=(connection, source, sink), daemon=True).start()

    def _pump(self, connection, source, sink):
        is_request = source is connection.ends[0]
        try:
            while True:
                select.select([source], [], [])
                connection.flows.wait()
                data = source.recv(self.CHUNK)
                if not data:
                    break
                if self.delay:
                    time.sleep(self.delay)
                marks = self.marks
                if marks is not None and marks(is_request, data):
                    connection.is_lost = True
                if connection.is_lost and not is_request:
                    self.lost += 1
                    time.sleep(self.LOST_SECONDS)
                    break
                sink.sendall(data)
        except (OSError, ValueError):
            pass
        with self.lock:
            self.connections.discard(connection)
        connection.end()

    def _some(self, dice, share):
        with self.lock:
            return [connection for connection in self.connections if dice.random() < share]

    def end_some(self, dice: random.Random, share):
        """Ends a share of the connections, as a firewall that forgot them."""
        for connection in self._some(dice, share):
            connection.end()

    def hold_some(self, dice: random.Random, share):
        """Half-open: nothing comes through any more, and nobody is told. What was held goes on with `release`."""
        held = self._some(dice, share)
        for connection in held:
            connection.flows.clear()
        return held

    def release(self, held):
        for connection in held:
            connection.flows.set()

    def lose_answers(self, marks):
        """What is asked reaches the server; its answer doesn't come back, and the connection ends. `marks(is_request, bytes)`
        says of a request that its answer, or of an answer that it is to be lost."""
        self.marks = marks

    def cut(self):
        self.is_cut = True
        self.end_some(random.Random(0), 1.1)

    def heal(self):
        self.is_cut, self.delay, self.marks = False, 0.0, None


class Connection:
    def __init__(self, client, server):
        self.ends = (client, server)
        self.is_lost = False
        self.flows = threading.Event()
        self.flows.set()

    def end(self):
        self.flows.set()
        for end in self.ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()
