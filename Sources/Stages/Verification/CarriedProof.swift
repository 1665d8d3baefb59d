import PurchasesJSON

/// The proof itself in the evidence of its verdict, so that one event is enough to judge again by. It lies in the topic
/// `received` too; but who is handed an event years later may have nothing else.
enum CarriedProof {
  /// Signed transactions have three to five thousand bytes, notifications up to about fifteen, receipts that are met in
  /// practice up to some forty. Larger ones would make `verified` grow by what hardly anybody reads.
  static let maximumBytes = 64 << 10
  /// A receipt has one event for each chain of purchases in it, and each would carry it.
  static let maximumCopiedBytes = 256 << 10

  static let name = "proofText"
  /// Why it is not there.
  static let absence = "proofNotCarried"

  /// - Parameter copies: how many events carry it.
  static func member(_ text: String, copies: Int) -> (name: String, value: JSON) {
    let count = text.utf8.count
    guard count <= maximumBytes else { return (absence, .string("it is larger than \(maximumBytes) bytes")) }
    guard count <= maximumCopiedBytes / max(copies, 1) else {
      return (absence, .string("its \(copies) copies are larger than \(maximumCopiedBytes) bytes"))
    }
    return (name, .string(text))
  }
}

extension JSON {
  /// The evidence with more in it.
  func with(_ member: (name: String, value: JSON)) -> JSON {
    guard var object else { return self }
    object[member.name] = member.value
    return .object(object)
  }
}

extension Verdict {
  /// The verdict with the proof in its evidence. Pending ones have no evidence in the log.
  func carrying(_ proof: String, copies: Int = 1) -> Verdict {
    switch self {
    case .verified(var verified):
      verified.evidence = verified.evidence.with(CarriedProof.member(proof, copies: copies))
      return .verified(verified)
    case .rejected(var rejected):
      rejected.evidence = rejected.evidence.with(CarriedProof.member(proof, copies: copies))
      return .rejected(rejected)
    case .pending: return self
    }
  }
}
