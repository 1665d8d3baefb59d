/// A text that is sent to Apple and shown to nobody: printing, interpolating or mirroring it shows three stars.
public struct Secret: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  let text: String

  public init(_ text: String) { self.text = text }

  public var description: String { "***" }
  public var debugDescription: String { "***" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
