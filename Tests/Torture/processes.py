"""The processes of a deployment, and a supervisor's hands for each."""

import collections
import os
import shutil
import signal
import subprocess
import threading
import time

# A step that isn't reached within this isn't: nothing was to be done.
CRASH_SECONDS = 15
# A process that was told to stop and has not after this hangs.
STOP_SECONDS = 60
# Of the line of its log in which a process that ended says why.
LAST_WORDS = 500
# How a process says that another one has its name.
FENCED = "fenced: another process runs as"


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


class Process:
    """One process. It is started again whenever it ends unasked, as a supervisor would."""

    def __init__(self, place, name, words):
        self.place, self.name, self.words = place, name, words
        self.is_wanted, self.is_still = True, False
        self.ends = collections.Counter()
        self.lock = threading.Lock()
        self.starts = 0
        self.forgiven_until = 0.0
        self._start()

    def _start(self, program=None, more=()):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PURCHASES_")}
        environment |= {**self.place.environment, **dict(more)}
        # Each start has a log of its own: two processes can have one name for a while.
        self.starts += 1
        self.log = self.place.folder / "logs" / f"{self.name}.{self.starts}.log"
        with open(self.log, "wb") as log:
            self.child = subprocess.Popen(
                [str(word) for word in [program or self.words[0], *self.words[1:]]], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment,
                cwd=self.place.folder,
            )

    def watch(self):
        """Starts it again where it has ended; answers the status it ended with, and the last that it said."""
        with self.lock:
            status = self.child.poll()
            if status is None or not self.is_wanted:
                return None
            said = self.last_words()
            if not (status == 1 and FENCED in said and time.monotonic() < self.forgiven_until):
                self.ends[status] += 1
            self._start()
            return status, said

    def show_threads(self):
        """Where it is, for whoever has to find out why; where a debugger is here."""
        if shutil.which("gdb"):
            with open(self.place.folder / f"{self.name}.{self.starts}.threads", "wb") as file:
                words = ["gdb", "-p", str(self.child.pid), "-batch", "-ex", "thread apply all bt 25"]
                subprocess.run(words, stdout=file, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def last_words(self):
        lines = self.log.read_text(errors="replace").splitlines()
        return lines[-1][:LAST_WORDS] if lines else "nothing"

    def kill(self):
        with self.lock:
            self.child.kill()
            self.child.wait()
            if self.is_wanted:
                self._start()

    def crash(self, program, points):
        """Ends at each of these steps in turn, in a build that knows them; answers how it ended each time."""
        with self.lock:
            statuses = []
            for point in points:
                self.child.kill()
                self.child.wait()
                self._start(program, {"PURCHASES_CRASH_AT": point}.items())
                try:
                    statuses.append(self.child.wait(CRASH_SECONDS))
                except subprocess.TimeoutExpired:
                    statuses.append(None)
            self.child.kill()
            self.child.wait()
            self._start()
            return statuses

    def succeed(self):
        """Stands still, and a successor under the same name is started; answers the one that stands."""
        with self.lock:
            old = self.child
            old.send_signal(signal.SIGSTOP)
            self._start()
            return old

    def forget_fenced(self, ends):
        """Goes back to the count of those before that ended as fenced; answers how many came after."""
        with self.lock:
            count = self.ends[1] - ends[1]
            self.ends[1] = ends[1]
            self.ends = +self.ends
            return count

    def forgive_fenced(self, seconds):
        """A zombie that took its name back for a moment is told of by its successor's next step, after the zombie's end."""
        self.forgiven_until = time.monotonic() + seconds

    def still(self):
        self.is_still = True
        self.child.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.is_still = False
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGCONT)

    def stop(self):
        """A planned stop: SIGTERM, and the status it ended with; None when it had to be killed."""
        with self.lock:
            self.is_wanted = False
            if self.is_still:
                self.go_on()
            if self.child.poll() is None:
                self.child.terminate()
            return self._end(STOP_SECONDS)

    def begin(self):
        """Once more after a planned stop."""
        with self.lock:
            self._start()
            self.is_wanted = True

    def end_of_one_start(self, seconds):
        """Waits, after a planned stop and a start that nobody watches, for it to end by itself; None when it did not."""
        with self.lock:
            return self._end(seconds)

    def start_unwatched(self):
        with self.lock:
            self._start()

    def _end(self, seconds):
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.show_threads()
            self.child.kill()
            self.child.wait()
            return None
