import PurchasesCryptography
import Testing

@Suite struct SignedNoteTests {
  // The key pair, text and signature that the Go implementation documents.
  private static let privateText =
    "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
  private static let publicText = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
  private static let text =
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
  private static let note =
    text
    + "\n\u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"

  private func signer(_ name: String, seed: UInt8 = 1) throws -> NoteSigner {
    let key = try #require(Ed25519PrivateKey(seed: [UInt8](repeating: seed, count: 32)))
    return try NoteSigner(name: name, key: key)
  }

  private func failure(_ note: String, _ known: [NoteVerifier]) -> NoteError? {
    do {
      try SignedNote(parsing: note).verify(with: known)
      return nil
    } catch {
      return error
    }
  }

  @Test func agreesWithTheGoImplementation() throws {
    let signer = try NoteSigner(text: Self.privateText)
    let verifier = try NoteVerifier(text: Self.publicText)
    #expect(signer.verifier == verifier)
    #expect(signer.text == Self.privateText)
    #expect(verifier.text == Self.publicText)
    let note = try SignedNote(signing: Self.text, with: [signer])
    #expect(String(decoding: note.encoded, as: UTF8.self) == Self.note)
    let parsed = try SignedNote(parsing: Self.note)
    #expect(parsed == note)
    #expect(try parsed.verify(with: [verifier]) == [verifier])
  }

  @Test func specificationExamplesParse() throws {
    let poem =
      "Ognuno sta solo sul cuor della terra\ntrafitto da un raggio di sole:\n\ned \u{E8} subito sera.\n\n"
      + "\u{2014} quasimodo.example/salvatore NnugSzTjtVAewIS+Z/iJhUPeFDkO/5QQ2i5ddnGITLlC+EhfLW9oJKONrMouFSQU0xMcXxj99ihAQwaqP3ZekRwNtIc=\n"
    let note = try SignedNote(parsing: poem)
    #expect(note.text.hasSuffix("sera.\n") && note.text.hasPrefix("Ognuno"))
    #expect(note.signatures.map(\.name) == ["quasimodo.example/salvatore"])
    #expect(note.signatures.first?.bytes.count == 64)
    #expect(note.encoded == Array(poem.utf8))
    let checkpoint = try Checkpoint(
      text: "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n")
    #expect(checkpoint.origin == "example.com/behind-the-sofa")
    #expect(checkpoint.size == 20_852_163)
  }

  @Test func everyChangedByteIsNoticed() throws {
    let verifier = try NoteVerifier(text: Self.publicText)
    let bytes = Array(Self.note.utf8)
    for index in bytes.indices {
      for change: UInt8 in [0x01, 0x20, 0x80] {
        var changed = bytes
        changed[index] ^= change
        #expect(throws: NoteError.self, "byte \(index)") {
          try SignedNote(parsing: changed).verify(with: [verifier])
        }
      }
    }
    for length in bytes.indices {
      #expect(throws: NoteError.self) {
        try SignedNote(parsing: Array(bytes.prefix(length))).verify(with: [verifier])
      }
    }
  }

  @Test func unknownSignaturesAreIgnoredAndFalseOnesCondemn() throws {
    let one = try signer("log.example/one")
    let other = try signer("witness.example", seed: 2)
    let note = try SignedNote(signing: "text\n", with: [one]).adding(other)
    #expect(try note.verify(with: [one.verifier]) == [one.verifier])
    #expect(try note.verify(with: [other.verifier, one.verifier]) == [one.verifier, other.verifier])
    #expect(throws: NoteError.unknownSigners) { try note.verify(with: [signer("log.example/one", seed: 3).verifier]) }
    #expect(throws: NoteError.unknownSigners) { try note.verify(with: []) }
    let whole = String(decoding: note.encoded, as: UTF8.self)
    #expect(failure(whole.replacing("text\n", with: "test\n"), [one.verifier]) == .badSignature)
    // The witness's signature of another text beside a good one of the log: known and false.
    let elsewhere = try SignedNote(signing: "other\n", with: [other])
    let mixed =
      String(decoding: try SignedNote(signing: "text\n", with: [one]).encoded, as: UTF8.self)
      + String(decoding: elsewhere.encoded, as: UTF8.self).split(separator: "\n")[1] + "\n"
    #expect(failure(mixed, [one.verifier]) == nil)
    #expect(failure(mixed, [one.verifier, other.verifier]) == .badSignature)
    // A signature of another algorithm's length under an unknown key id is kept and ignored.
    let long = whole + "\u{2014} pq.example " + Base64.encode([UInt8](repeating: 7, count: 2_424)) + "\n"
    #expect(failure(long, [one.verifier]) == nil)
  }

  @Test(arguments: [
    "", "\n", "text\n", "text\n\n", "text\n\n\u{2014} a AAAAAAA=", "text\n\n- a AAAAAAA=\n",
    "text\n\n\u{2014} a b AAAAAAA=\n",
    "text\n\n\u{2014} a+b AAAAAAA=\n", "text\n\n\u{2014}  AAAAAAA=\n", "text\n\n\u{2014} a AAAA\n",
    "text\n\n\u{2014} a AAAAAAA\n",
    "text\n\u{2014} a AAAAAAA=\n", "te\txt\n\n\u{2014} a AAAAAAA=\n", "text\r\n\n\u{2014} a AAAAAAA=\n",
    "\n\u{2014} a AAAAAAA=\n", "text\n\n\u{2014} a AAAAAAA=\nmore\n",
  ])
  func otherFormsAreRefused(_ text: String) {
    #expect(throws: NoteError.self) { try SignedNote(parsing: text) }
  }

  @Test func limits() throws {
    let line = "\u{2014} a AAAAAAA=\n"
    _ = try SignedNote(parsing: "t\n\n" + String(repeating: line, count: SignedNote.maximumSignatureCount))
    #expect(throws: NoteError.tooManySignatures) {
      try SignedNote(parsing: "t\n\n" + String(repeating: line, count: SignedNote.maximumSignatureCount + 1))
    }
    #expect(throws: NoteError.tooLarge) {
      try SignedNote(parsing: [UInt8](repeating: 0x61, count: SignedNote.maximumByteCount + 1))
    }
    #expect(throws: NoteError.notText) { try SignedNote(parsing: [0xFF, 0x0A, 0x0A]) }
    let signer = try signer("a")
    #expect(throws: NoteError.notText) { try SignedNote(signing: "no newline", with: [signer]) }
    #expect(throws: NoteError.notText) { try SignedNote(signing: "a\tb\n", with: [signer]) }
    #expect(throws: NoteError.badForm) { try SignedNote(signing: "a\n", with: []) }
  }

  @Test func keysInOtherFormsAreRefused() throws {
    for name in ["", "a b", "a+b", "a\u{2003}b", "a\nb"] {
      #expect(throws: NoteError.badKeyName) { try signer(name) }
    }
    for text in [
      "", "a", "a+b", "PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
      "PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
      "PeterNeumann+c74f20a3+Ahpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", "PeterNeumann+c74f20a3+ARpc",
      "Peter+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", Self.privateText,
    ] {
      #expect(throws: NoteError.self) { try NoteVerifier(text: text) }
    }
    for text in ["", Self.publicText, "PRIVATE+" + Self.privateText, Self.privateText + "A"] {
      #expect(throws: NoteError.self) { try NoteSigner(text: text) }
    }
  }

  @Test func checkpointsRoundTripThroughNotes() throws {
    let signer = try signer("log.example/purchases")
    for (size, extensions) in [(UInt64(0), []), (UInt64.max, ["one", "two words"])] {
      let checkpoint = try Checkpoint(
        origin: signer.name, size: size, root: MerkleTree.leafHash([1]), extensions: extensions)
      #expect(try Checkpoint(text: checkpoint.text) == checkpoint)
      let note = try checkpoint.signed(by: [signer]).encoded
      #expect(try Checkpoint(verifying: note, with: [signer.verifier]) == checkpoint)
      #expect(throws: NoteError.unknownSigners) {
        try Checkpoint(verifying: note, with: [self.signer("x", seed: 9).verifier])
      }
    }
    #expect(throws: NoteError.badCheckpoint) {
      try Checkpoint(verifying: SignedNote(signing: "only text\n", with: [signer]).encoded, with: [signer.verifier])
    }
    #expect(throws: NoteError.badCheckpoint) { try Checkpoint(origin: "a\nb", size: 0, root: MerkleTree.emptyRoot) }
    #expect(throws: NoteError.badCheckpoint) { try Checkpoint(origin: "", size: 0, root: MerkleTree.emptyRoot) }
  }

  @Test(arguments: [
    "o\n1\n", "o\n01\nROOT\n", "o\n+1\nROOT\n", "o\n-1\nROOT\n", "o\n1 \nROOT\n", "\n1\nROOT\n", "o\n\nROOT\n",
    "o\n1\nROOT", "o\n1\nROOT\n\n", "o\n1\nROOT\nx\n\n", "o\n1\nAAAA\n", "o\n18446744073709551616\nROOT\n",
  ])
  func checkpointsHaveOneForm(_ text: String) {
    let root = Base64.encode(MerkleTree.emptyRoot.bytes)
    #expect(throws: NoteError.badCheckpoint) { try Checkpoint(text: text.replacing("ROOT", with: root)) }
  }
}
