import Glibc

/// Where log lines and messages go. A disk that is full, or a reader that went away, must not end a stage in mid-work:
/// what can't be written is dropped.
public enum StandardError {
  public static func write(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let written = rest.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
      if written < 0, errno == EINTR { continue }
      guard written > 0 else { return }
      rest = rest.dropFirst(written)
    }
  }
}
