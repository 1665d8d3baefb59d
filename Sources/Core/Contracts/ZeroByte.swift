extension String {
  /// Eight bytes at a time: every text of every event and row is asked.
  var hasZeroByte: Bool {
    var text = self
    return text.withUTF8 { utf8 in
      let bytes = UnsafeRawBufferPointer(utf8)
      var index = 0
      while index + 8 <= bytes.count {
        // The first borrow comes from a zero byte: without one, no top bit is set that was not set before.
        let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
        if (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080 != 0 { return true }
        index += 8
      }
      return bytes[index...].contains(0)
    }
  }
}
