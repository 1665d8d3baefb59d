import Dispatch
import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import Synchronization

/// The port to Apple for the stages: asks `verifyReceipt` about receipts, and hands every other question on.
///
/// What says something about the receipt is given as it came, for the stage to judge: genuine, not authentic (21003),
/// no such account (21010), malformed or busy (21002), a contradiction (21007 or 21008 of the side that was asked last)
/// and an error that is not to be tried again. All else could not be told.
public final class AppStoreDesk: AppStore {
  /// Questions that are asked at a time: enough to hide Apple's latency, few enough for its patience.
  public static let defaultConcurrency = 8
  /// For all questions of a batch together, in milliseconds. A stage must get back to its group before that gives its
  /// partitions away (three sessions, 30 s by default); what was not asked in this time is asked when its record comes back.
  public static let defaultBudget: Int64 = 10_000

  private let receipts: ReceiptClient?
  private let others: (any AppStore)?
  private let clock: any Clock
  private let concurrency: Int
  private let budget: Int64

  /// - Parameters:
  ///   - receipts: nil where nobody may ask `verifyReceipt`.
  ///   - others: answers what is not about receipts.
  public init(
    receipts: ReceiptClient?, others: (any AppStore)? = nil, clock: any Clock,
    concurrency: Int = AppStoreDesk.defaultConcurrency, budget: Int64 = AppStoreDesk.defaultBudget
  ) {
    precondition(concurrency > 0 && budget > 0, "a desk that answers nothing")
    self.receipts = receipts
    self.others = others
    self.clock = clock
    self.concurrency = concurrency
    self.budget = budget
  }

  public func answers(to questions: [AppStoreQuestion]) -> [AppStoreQuestion: AppStoreAnswer] {
    var rest: [AppStoreQuestion] = []
    var asked: [(question: AppStoreQuestion, receipt: [UInt8])] = []
    for question in Set(questions) {
      if case .receipt(let receipt) = question { asked.append((question, receipt)) } else { rest.append(question) }
    }
    var answers: [AppStoreQuestion: AppStoreAnswer] = [:]
    if let others, !rest.isEmpty { answers = others.answers(to: rest) }
    for question in rest where answers[question] == nil {
      answers[question] = .unavailable("nobody is set up to ask Apple this")
    }
    answers.merge(ask(asked)) { $1 }
    return answers
  }

  private func ask(
    _ asked: [(question: AppStoreQuestion, receipt: [UInt8])]
  ) -> [AppStoreQuestion: AppStoreAnswer] {
    guard !asked.isEmpty else { return [:] }
    guard let receipts else {
      return Dictionary(
        uniqueKeysWithValues: asked.map { ($0.question, .unavailable("verifyReceipt is not set up to be asked")) })
    }
    let end = clock.now().advanced(byMilliseconds: budget)
    let next = Atomic(0)
    let found = Mutex<[AppStoreQuestion: AppStoreAnswer]>([:])
    // The calling thread and those of libdispatch, never Swift's cooperative pool.
    DispatchQueue.concurrentPerform(iterations: min(concurrency, asked.count)) { _ in
      while true {
        let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
        guard index < asked.count else { return }
        let answer =
          clock.now() < end
          ? self.answer(receipts, asked[index].receipt)
          : AppStoreAnswer.unavailable("the time for this batch was up before verifyReceipt could be asked")
        found.withLock { $0[asked[index].question] = answer }
      }
    }
    return found.withLock { $0 }
  }

  private func answer(_ receipts: ReceiptClient, _ receipt: [UInt8]) -> AppStoreAnswer {
    guard let text = String(validating: receipt, as: UTF8.self) else {
      return .unavailable("the receipt is not text: verifyReceipt takes base64")
    }
    func given(_ body: [UInt8], _ environment: Environment) -> AppStoreAnswer {
      .given(AppStoreResponse(body: body, at: clock.now(), environment: environment))
    }
    switch receipts.verify(receiptData: text) {
    case .valid(let answer), .expired(let answer): return given(answer.body, answer.environment)
    case .rejected(let rejection): return given(rejection.body, rejection.side.environment)
    case .undecided(let trouble):
      let saysSomething = [.malformedOrBusy, .contradiction, .notRetryable].contains(trouble.reason)
      guard saysSomething, let body = trouble.body else { return .unavailable("verifyReceipt: \(trouble.detail)") }
      return given(body, trouble.side.environment)
    }
  }
}
