import PurchasesContracts
import PurchasesCore

/// A day in the life of an app: what the payment queues of its users tell the back end, and what the App Store notifies.
///
/// The same seed, number of accounts and day give the same scenario, byte for byte. It is built so that the state at its
/// end depends on that alone: each account's story is a lane whose steps are done in order, a step that depends on an
/// earlier one waits for the pipeline's answer to it, and no two lanes touch the same purchase.
public struct Scenario: Sendable {
  public static let dayMilliseconds: Int64 = 86_400_000
  /// Steps of one quarter of an hour share one reading of the scenario's clock.
  public static let slotMilliseconds: Int64 = 900_000

  public let seed: UInt64
  public let accounts: Int
  public let day: Instant
  public let slots: [Slot]
  public let authority: LocalAuthority

  public struct Slot: Sendable {
    /// What the clock says while the slot is played; no step of it is later.
    public let at: Instant
    /// Steps that must keep their order; lanes go side by side.
    public let lanes: [[Step]]
  }

  /// Midnight of the day before: its dates are in nobody's future, and whoever plays it a second time within the day tells
  /// the same again, byte for byte.
  public static func dayBefore(_ now: Instant) -> Instant {
    let today = now.milliseconds - now.milliseconds % dayMilliseconds
    return Instant(milliseconds: today - dayMilliseconds)
  }

  /// The instant of which the final state is a function: the end of the day.
  public var end: Instant { day.advanced(byMilliseconds: Self.dayMilliseconds) }
  public var steps: Int { slots.reduce(0) { $0 + $1.lanes.reduce(0) { $0 + $1.count } } }

  /// - Parameters:
  ///   - accounts: how many stories are told; a few need a second account.
  ///   - day: midnight; every date of the scenario lies within 24 hours from then.
  public init(seed: UInt64, accounts: Int, day: Instant) {
    precondition(accounts > 0, "a scenario without accounts")
    self.seed = seed
    self.accounts = accounts
    self.day = day
    authority = LocalAuthority(seed: seed)
    let count = Int(Self.dayMilliseconds / Self.slotMilliseconds)
    var slots: [[[Step]]] = Array(repeating: [], count: count)
    for index in 0..<accounts {
      var teller = Storyteller(seed: seed, index: index, day: day)
      teller.tell()
      var lanes: [Int: [Step]] = [:]
      for (order, step) in teller.steps.enumerated().sorted(by: { ($0.1.at, $0.0) < ($1.1.at, $1.0) }) {
        _ = order
        // The slot that ends at the step's time or after it: nothing is told before it happened.
        let passed = step.at.milliseconds - day.milliseconds + Self.slotMilliseconds - 1
        lanes[min(count - 1, max(0, Int(passed / Self.slotMilliseconds) - 1)), default: []].append(step)
      }
      for (slot, steps) in lanes { slots[slot].append(steps) }
    }
    self.slots = slots.enumerated().compactMap { index, lanes in
      lanes.isEmpty
        ? nil : Slot(at: day.advanced(byMilliseconds: Int64(index + 1) * Self.slotMilliseconds), lanes: lanes)
    }
  }
}

/// One thing that happens.
public struct Step: Sendable {
  public let at: Instant
  public let action: Action

  public enum Action: Sendable {
    /// A client or its back end reports.
    case report(Report)
    /// A client waits for the permit to finish what it reported, and finishes only with it.
    case finish(Report, permit: Permit)
    /// The App Store notifies.
    case notify(Notification)
    /// A client waits until it sees its balance.
    case seeBalance(Environment, Account, unit: String, amount: Int64)
  }

  public struct Report: Sendable {
    let event: ReceivedEvent
    let proof: Proof?

    /// The body of `POST /v1/events`.
    public func body(_ authority: LocalAuthority) -> [UInt8] {
      var event = event
      if case .payment(var payment) = event, let proof {
        payment.signedTransaction = proof.text(authority)
        event = .payment(payment)
      }
      var body = Array(#"{"type":"\#(event.type.rawValue)""#.utf8)
      let data = event.data
      if data.count > 2 { body.append(UInt8(ascii: ",")) }
      body += data.dropFirst()
      return body
    }

    public var type: EventType { event.type }
  }

  public struct Notification: Sendable {
    let notification: StoreNotification
    let isForged: Bool

    public func body(_ authority: LocalAuthority) -> [UInt8] {
      let payload = notification.payload(authority)
      let signed = isForged ? Proof.foreign.sign(payload) : authority.sign(payload)
      return Array(#"{"signedPayload":"\#(signed)"}"#.utf8)
    }

    public var type: String { notification.type }
  }

  /// By what a client asks for its permit.
  public struct Permit: Sendable {
    public let environment: Environment
    public let account: Account
    let name: Name

    enum Name: Sendable {
      case proof(Proof)
      case attempt(String)
    }

    /// The proof's digest, or the attempt's name.
    public func key(_ authority: LocalAuthority) -> String {
      switch name {
      case .proof(let proof): proof.digest(authority)
      case .attempt(let attempt): "attempt:" + attempt
      }
    }
  }
}
