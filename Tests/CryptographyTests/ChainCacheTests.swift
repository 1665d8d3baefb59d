import PurchasesCryptography
import Testing

@Suite struct ChainCacheTests {
  private let good = ChainParts()

  private enum HeaderFault: Error { case refused }

  private func failure(_ result: Result<JudgedChain, ChainFailure>) -> ChainFailure? {
    if case .failure(let failure) = result { return failure }
    return nil
  }

  @Test func datesAreCheckedAtEachUse() throws {
    let cache = ChainCache(anchors: try good.anchors)
    let x5c = good.x5c
    // Known or not, in whatever order the times come: the answer is the policy's.
    for time in [
      midnight(2026, 1, 1), ChainParts.within, midnight(2026, 1, 1), ChainParts.start - 1, ChainParts.within,
    ] {
      let expected = failure(ChainPolicy.judge(x5c: x5c, anchors: cache.anchors, at: time))
      #expect(failure(cache.judge(x5c: x5c, at: time)) == expected)
    }
    #expect(cache.count == 1)
  }

  @Test func failuresAreNotKept() throws {
    let cache = ChainCache(anchors: AppleRoots.storeKit)
    #expect(failure(cache.judge(x5c: good.x5c, at: ChainParts.within)) == .untrustedRoot)
    #expect(failure(cache.judge(x5c: [], at: 0)) == .wrongChainLength)
    let huge = [UInt8](repeating: 0x30, count: Certificate.maximumByteCount + 1)
    #expect(failure(cache.judge(x5c: [huge, huge, huge], at: 0)) == .certificateMalformed)
    #expect(cache.count == 0)
  }

  @Test func aKnownHeaderIsNotReadAgain() throws {
    let cache = ChainCache(anchors: try good.anchors)
    let header = Array("header one".utf8)
    var reads = 0
    for _ in 0..<3 {
      let answer = cache.judge(header: header[...], at: ChainParts.within) {
        reads += 1
        return good.x5c
      }
      #expect(failure(answer) == nil)
    }
    #expect(reads == 1)
    #expect(failure(cache.judge(header: header[...], at: 0) { good.x5c }) == .notYetValid)
    // Another header under the same chain is read, and finds the chain.
    _ = cache.judge(header: Array("header two".utf8)[...], at: ChainParts.within) { good.x5c }
    #expect(cache.count == 1)
    // A header refused for another reason is refused each time.
    for _ in 0..<2 {
      #expect(throws: HeaderFault.refused) {
        try cache.judge(header: Array("bad".utf8)[...], at: ChainParts.within) { () throws(HeaderFault) in
          throw HeaderFault.refused
        }
      }
    }
  }

  @Test func theCacheIsBounded() throws {
    let cache = ChainCache(anchors: try good.anchors, capacity: 4)
    for serial in UInt8(1)...20 {
      var parts = ChainParts()
      parts.leafBuilder.serial = [serial]
      let x5c = parts.x5c
      #expect(failure(cache.judge(header: [serial], at: ChainParts.within) { x5c }) == nil)
      #expect(cache.count <= 4)
    }
    #expect(cache.count == 4)
    #expect(failure(cache.judge(x5c: good.x5c, at: ChainParts.within)) == nil)
  }

  /// Headers are the sender's to vary: any number may come under one chain.
  @Test func headersAreBoundedToo() throws {
    let cache = ChainCache(anchors: try good.anchors, capacity: 4)
    var reads = 0
    func judge(_ header: UInt8) {
      let answer = cache.judge(header: [header], at: ChainParts.within) {
        reads += 1
        return good.x5c
      }
      #expect(failure(answer) == nil)
    }
    for header in UInt8(1)...5 { judge(header) }
    judge(5)
    #expect(reads == 5, "the newest is known")
    judge(1)
    #expect(reads == 6, "the oldest had to leave")
    #expect(cache.count == 1)
  }

  /// What comes last must be an anchor by name and key; whether it is the anchor byte for byte only saves reading it.
  @Test func anAnchorUnderAnotherSerialNumberIsTheSameAnchor() throws {
    let anchors = try good.anchors
    var x5c = good.x5c
    var root = good.rootBuilder
    root.serial = [77]
    x5c[2] = root.selfSigned(key: good.rootKey).der
    #expect(x5c[2] != anchors.certificates[0].der)
    #expect(failure(ChainPolicy.judge(x5c: x5c, anchors: anchors, at: ChainParts.within)) == nil)
    x5c[2].removeLast()
    #expect(failure(ChainPolicy.judge(x5c: x5c, anchors: anchors, at: ChainParts.within)) == .certificateMalformed)
  }

  /// One key under many threads: contexts are lent, never shared.
  @Test func parallelVerificationsAgree() async throws {
    let key = P256PrivateKey(seed: [3])
    let messages = (0..<64).map { Array("message \($0)".utf8) }
    let signatures = messages.map { key.sign($0) }
    let publicKey = key.publicKey
    let right = await withTaskGroup(of: Int.self) { group in
      for start in 0..<8 {
        group.addTask {
          var right = 0
          for step in 0..<messages.count {
            let index = (start * 8 + step) % messages.count
            if publicKey.verify(signature: signatures[index], message: messages[index]) { right += 1 }
            if publicKey.verify(signature: signatures[index], message: messages[(index + 1) % messages.count]) {
              right -= 1
            }
          }
          return right
        }
      }
      return await group.reduce(0, +)
    }
    #expect(right == 8 * messages.count)
  }
}
