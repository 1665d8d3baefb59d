import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import PurchasesTestKit
import Testing

@testable import PurchasesVerification

/// What is not exactly what was signed is never taken, and nothing makes the judge crash or hang.
struct MutationTests {
  let store = TestStore.shared

  private func tokens() -> [[UInt8]] {
    let transaction = store.sign(TestStore.transaction())
    let notification = store.sign(
      TestStore.notification([
        "signedTransactionInfo": .string(transaction), "signedRenewalInfo": .string(store.sign(TestStore.renewal())),
      ]))
    return [transaction, notification, store.sign(TestStore.appTransaction())].map { Array($0.utf8) }
  }

  @Test func changedBytesAreNeverAccepted() throws {
    let seed = UInt64.random(in: 0 ... .max)
    print("seed \(seed)")
    var random = SeededRandom(seed: seed)
    let judge = try store.judge()
    for token in tokens() {
      #expect(judge.judge(token, at: TestStore.now).code == "verified")
      for _ in 0..<2000 {
        var changed = token
        switch Int.random(in: 0..<5, using: &random) {
        case 0:
          let index = Int.random(in: 0..<changed.count, using: &random)
          changed[index] = UInt8.random(in: 0...255, using: &random)
        case 1: changed.remove(at: Int.random(in: 0..<changed.count, using: &random))
        case 2:
          let alphabet = Array("ABCxyz019-_.=+/".utf8)
          changed.insert(
            alphabet[Int.random(in: 0..<alphabet.count, using: &random)],
            at: Int.random(in: 0...changed.count, using: &random))
        case 3:
          let index = Int.random(in: 0..<changed.count, using: &random)
          changed[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        default:
          changed.swapAt(
            Int.random(in: 0..<changed.count, using: &random), Int.random(in: 0..<changed.count, using: &random))
        }
        if changed == token { continue }
        #expect(judge.judge(changed, at: TestStore.now).verified == nil, "seed \(seed)")
      }
    }
  }

  /// The payload changed to a neighbour's, the signature kept.
  @Test func changedFieldsAreNeverAccepted() throws {
    let judge = try store.judge()
    let good = store.sign(TestStore.transaction()).split(separator: ".").map(String.init)
    for name in TestStore.transaction().members.map(\.name) {
      for value in [nil, JSON.string("x"), .integer(2), .null] {
        let payload = Base64URL.encode(JSON.object(TestStore.transaction([name: value])).bytes)
        #expect(judge.judge("\(good[0]).\(payload).\(good[2])", at: TestStore.now).code == "jws-signature-invalid")
      }
    }
    let other = store.sign(TestStore.renewal()).split(separator: ".").map(String.init)
    #expect(judge.judge("\(good[0]).\(other[1]).\(good[2])", at: TestStore.now).code == "jws-signature-invalid")
    #expect(judge.judge("\(good[0]).\(good[1]).\(other[2])", at: TestStore.now).code == "jws-signature-invalid")
  }

  /// A header that was seen under a good chain vouches for no other signature.
  @Test func aKnownHeaderVouchesForNothingElse() throws {
    let judge = try store.judge()
    #expect(judge.judge(store.sign(TestStore.transaction()), at: TestStore.now).code == "verified")
    let forged = store.sign(TestStore.transaction(), key: P256PrivateKey(seed: [8]))
    #expect(judge.judge(forged, at: TestStore.now).code == "jws-signature-invalid")
    let late = TestStore.transaction(["signedDate": .integer(TestStore.leafThrough.milliseconds + 86_400_000)])
    #expect(judge.judge(store.sign(late), at: .at("2026-01-01T00:00:00Z")).code == "chain-expired")
    #expect(judge.judge(store.sign(TestStore.transaction()), at: TestStore.now).code == "verified")
  }

  @Test func everyPrefixIsRejected() throws {
    let judge = try store.judge()
    for token in tokens() {
      for length in 0..<token.count where length % 7 == 0 || length + 200 > token.count {
        #expect(judge.judge(Array(token[..<length]), at: TestStore.now).rejected != nil)
      }
    }
  }

  @Test func hugeAndDeepInputsAreBounded() throws {
    let judge = try store.judge()
    func code(_ bytes: [UInt8]) -> String { judge.judge(bytes, at: TestStore.now).code }
    #expect(code([UInt8](repeating: 0x41, count: 4 << 20)) == "jws-too-large")
    #expect(code([UInt8](repeating: 0x2e, count: 100_000)) == "jws-wrong-segment-count")
    let long = Array("A.".utf8) + [UInt8](repeating: 0x41, count: 400_000) + Array(".A".utf8)
    #expect(judge.judge(long, at: TestStore.now).rejected != nil)
    let deep = String(repeating: "[", count: 60_000)
    let nested = CompactJWS.sign(header: Array(deep.utf8), payload: [0x7b, 0x7d], key: store.leafKey)
    #expect(code(Array(nested.utf8)) == "jws-header-not-json")
    // A chain of thousands of certificates.
    let many = store.sign(TestStore.transaction(), chain: [[UInt8]](repeating: [0x30, 0x00], count: 5000))
    #expect(code(Array(many.utf8)) == "chain-wrong-length")
    let wide = String(repeating: "9", count: 300_000)
    #expect(code(Array(store.sign(raw: Array(#"{"signedDate":\#(wide)}"#.utf8)).utf8)) == "unknown-kind")
    var state = SeededRandom(seed: 1)
    let noise = (0..<500_000).map { _ in UInt8.random(in: 0...255, using: &state) }
    #expect(judge.judge(noise, at: TestStore.now).rejected != nil)
  }
}
