import PurchasesContracts
import PurchasesCore
import PurchasesJSON

/// Tells what happens to one account (and whom it drags in) during the day.
struct Storyteller {
  typealias Product = DemoCatalogue.Product

  let index: Int
  let day: Instant
  var random: SeededRandom
  var steps: [Step] = []
  let environment: Environment
  /// The account's UUID, which is its `appAccountToken` too.
  let token: String
  private var transactions = 0

  /// Minutes of the day in which a story may begin, so that it comes to its end.
  static let beginnings = 10...600

  init(seed: UInt64, index: Int, day: Instant) {
    self.index = index
    self.day = day
    random = SeededRandom(seed: seed, stream: UInt64(index))
    // App Review and testers buy in the sandbox.
    environment = random.chance(4) ? .sandbox : .production
    token = random.uuid()
  }

  mutating func tell() {
    if index == 0 { tellOfTheStoreItself() }
    let chapters = 1 + (random.chance(35) ? 1 : 0) + (random.chance(10) ? 1 : 0)
    var hasCoins = false
    var hasSubscription = false
    for _ in 0..<chapters {
      switch random.below(100) {
      case 0..<32 where !hasCoins:
        hasCoins = true
        tellOfCoins()
      case 32..<58 where !hasSubscription:
        hasSubscription = true
        tellOfASubscription()
      case 58..<68: tellOfAUnlock()
      case 68..<75: tellOfASeason()
      case 75..<87: tellOfAFailure()
      case 87..<92: tellOfAnApproval()
      case 92..<95: tellOfAForgery()
      case 95..<98: tellOfAPurchaseWithoutToken()
      case 98..<100: tellOfCarelessness()
      default: tellOfAFailure()
      }
    }
    if !hasCoins && random.chance(5) { spend(50, at: minute(random.within(Self.beginnings)), account: account) }
  }

  // MARK: Time and names

  var account: Account { named(token) }

  func named(_ token: String) -> Account {
    guard let account = Account(token: token) else { preconditionFailure("a UUID is an account") }
    return account
  }

  func minute(_ minute: Int) -> Instant { day.advanced(byMilliseconds: Int64(minute) * 60_000) }

  func after(_ instant: Instant, minutes: Int) -> Instant { instant.advanced(byMilliseconds: Int64(minutes) * 60_000) }

  /// Nothing is delivered after this: the pipeline must have the day's facts by its end.
  var lastDelivery: Instant { minute(1425) }

  mutating func nextID() -> String {
    transactions += 1
    return String(2_000_000_000_000_000 + Int64(index) * 1000 + Int64(transactions))
  }

  mutating func attempt() -> String { "\(index)-\(random.uuid().prefix(8))" }

  // MARK: Steps

  mutating func report(_ event: ReceivedEvent, _ proof: Proof? = nil, at: Instant) {
    steps.append(Step(at: at, action: .report(Step.Report(event: event, proof: proof))))
  }

  func payment(
    _ type: EventType, _ attempt: String, _ product: Product?, at: Instant, account: Account? = nil,
    transaction: StoreTransaction? = nil, quantity: Int64? = nil
  ) -> PaymentReported {
    var payment = PaymentReported(
      type: type, environment: environment, account: account ?? self.account, attempt: attempt)
    payment.occurredAt = at
    payment.product = product.flatMap { ProductID($0.id) }
    payment.transaction = transaction.flatMap { TransactionID($0.id) }
    payment.originalTransaction = transaction.flatMap { OriginalTransactionID($0.original) }
    payment.quantity = quantity
    return payment
  }

  /// A client shows a signed transaction and, some twenty minutes later (its user looked elsewhere), finishes it with the
  /// permit. Answers when it finished.
  @discardableResult
  mutating func show(
    _ transaction: StoreTransaction, _ attempt: String, at: Instant, type: EventType = .paymentPurchased,
    account: Account? = nil, finishes: Bool = true
  ) -> Instant {
    let proof = Proof.transaction(transaction, signed: at)
    report(
      .payment(
        payment(
          type, attempt, transaction.product, at: at, account: account, transaction: transaction,
          quantity: transaction.quantity)), proof, at: at)
    let finished = after(at, minutes: 20)
    if finishes { finish(transaction, attempt, proof, at: finished, account: account) }
    return finished
  }

  mutating func finish(
    _ transaction: StoreTransaction, _ attempt: String, _ proof: Proof, at: Instant, account: Account? = nil
  ) {
    let event = payment(
      .paymentFinished, attempt + "-f", transaction.product, at: at, account: account, transaction: transaction)
    let permit = Step.Permit(environment: environment, account: account ?? self.account, name: .proof(proof))
    steps.append(Step(at: at, action: .finish(Step.Report(event: .payment(event), proof: nil), permit: permit)))
  }

  /// The store notifies. One in ten comes again, one in ten comes hours late, with the date it was made at.
  mutating func notify(
    _ type: String, _ subtype: String? = nil, at: Instant, transaction: StoreTransaction? = nil,
    renewal: StoreRenewal? = nil
  ) {
    let notification = StoreNotification(
      type: type, subtype: subtype, uuid: random.uuid(), signed: at, environment: environment,
      body: .data(transaction: transaction, renewal: renewal))
    var delivery = at
    if random.chance(10) { delivery = min(lastDelivery, after(at, minutes: random.within(60...200))) }
    deliver(notification, at: max(at, delivery))
    if random.chance(10) { deliver(notification, at: max(at, min(lastDelivery, after(delivery, minutes: 45)))) }
  }

  mutating func deliver(_ notification: StoreNotification, isForged: Bool = false, at: Instant) {
    steps.append(
      Step(at: at, action: .notify(Step.Notification(notification: notification, isForged: isForged))))
  }

  mutating func spend(_ amount: Int64, at: Instant, account: Account) {
    guard let unit = CreditUnit("coins") else { preconditionFailure("a unit's name") }
    report(
      .spendRequested(
        SpendRequested(
          environment: environment, account: account, unit: unit, amount: amount, idempotencyKey: attempt())),
      at: at)
  }

  mutating func newTransaction(
    _ product: Product, at: Instant, quantity: Int64 = 1, original: StoreTransaction? = nil, hasToken: Bool = true
  ) -> StoreTransaction {
    let id = nextID()
    return StoreTransaction(
      environment: environment, id: id, original: original?.original ?? id, product: product, purchased: at,
      firstPurchased: original?.firstPurchased ?? at, quantity: quantity, token: hasToken ? token : nil)
  }
}
