import Foundation
import Glibc
import PurchasesRunner

/// SIGTERM and SIGINT ask for a stop. Must be called before any other thread is started: they inherit the mask.
public enum Signals {
  public static func stop(_ stop: StopSignal) {
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGTERM)
    sigaddset(&set, SIGINT)
    pthread_sigmask(SIG_BLOCK, &set, nil)
    let waited = set
    let thread = Thread {
      var set = waited
      var number: Int32 = 0
      while sigwait(&set, &number) == 0 {
        // Asked a second time, the person means it.
        if stop.isSet { _exit(128 + number) }
        stop.set()
      }
    }
    thread.name = "signals"
    thread.start()
  }
}
