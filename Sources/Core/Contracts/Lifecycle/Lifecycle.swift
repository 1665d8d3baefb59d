/// What a notification does, as a table: where a purchase stands, and what the notification is about, give an effect.
///
/// The folds know nothing of it. A type decides nothing by itself: what is signed inside does, in the order of its own dates.
/// This table says what then comes of it, for every state, type and subtype, so that people can look it up. A test brings a
/// purchase into each state, sends each notification and holds the folds to the cell; `docs/lifecycle.md` is written from here.
public enum Lifecycle {
  /// Every type that Apple's pages name, and one for all that they don't.
  public static let types: [Stated<NotificationType>] =
    NotificationType.allCases.map(Stated.known) + [.unknown("ANOTHER_TYPE")]

  /// No subtype, every one that Apple's pages name, and one for all that they don't.
  public static let subtypes: [Stated<NotificationSubtype>?] =
    [nil] + NotificationSubtype.allCases.map { .known($0) } + [.unknown("ANOTHER_SUBTYPE")]

  /// The cell.
  public static func effect(
    _ state: State, _ type: Stated<NotificationType>, _ subtype: Stated<NotificationSubtype>?
  ) -> Effect { effect(of: statement(type, subtype), in: state) }

  /// What comes of a statement where the purchase stands like that.
  public static func effect(of statement: Statement, in state: State) -> Effect {
    Effect(access: access(statement, state), renewal: renewal(statement, state))
  }

  private static func access(_ statement: Statement, _ state: State) -> Effect.Access {
    switch statement {
    case .nothing: .unchanged
    case .asItStands: state == .unknown ? .grants : .unchanged
    case .renews, .stops, .changes, .keepsProduct: state.hasSubscription ? .unchanged : .grants
    case .period:
      switch state {
      case .running, .ending, .changing, .grace, .upgraded: .extends
      case .unknown, .retry, .expired, .refunded, .lifetime, .lifetimeRefunded, .credited, .creditsRefunded: .grants
      }
    case .upgrade:
      switch state {
      case .running, .ending, .changing, .grace, .upgraded: .replaces
      case .unknown, .retry, .expired, .refunded, .lifetime, .lifetimeRefunded, .credited, .creditsRefunded: .grants
      }
    case .grace:
      switch state {
      case .running, .ending, .changing, .upgraded: .extends
      case .unknown, .retry, .expired, .lifetime, .lifetimeRefunded, .credited, .creditsRefunded: .grants
      // It is there already; what was given back stays given back.
      case .grace, .refunded: .unchanged
      }
    case .retries, .over:
      switch state {
      // Grace is what Apple's newest word on it says, and that word is that there is none.
      case .grace: .ends
      case .unknown, .running, .ending, .changing, .retry, .expired, .refunded, .upgraded, .lifetime, .lifetimeRefunded,
        .credited, .creditsRefunded:
        .unchanged
      }
    case .revoked:
      switch state {
      case .running, .ending, .changing, .grace, .lifetime: .revokes
      case .credited: .takesCredits
      // Of what was over, replaced or given back nothing is left to take; of what nobody knew yet a tombstone is kept.
      case .unknown, .retry, .expired, .refunded, .upgraded, .lifetimeRefunded, .creditsRefunded: .unchanged
      }
    case .notRevoked:
      switch state {
      case .unknown: .grants
      case .refunded, .lifetimeRefunded: .restores
      case .creditsRefunded: .returnsCredits
      case .running, .ending, .changing, .grace, .retry, .expired, .upgraded, .lifetime, .credited: .unchanged
      }
    case .extended:
      switch state {
      case .running, .ending, .changing, .grace: .extends
      case .unknown, .retry, .expired, .lifetime, .lifetimeRefunded, .credited, .creditsRefunded: .grants
      case .refunded, .upgraded: .unchanged
      }
    case .charged:
      switch state {
      case .credited, .creditsRefunded: .addsCredits
      case .lifetime: .unchanged
      case .unknown, .running, .ending, .changing, .grace, .retry, .expired, .refunded, .upgraded, .lifetimeRefunded:
        .grants
      }
    }
  }

  private static func renewal(_ statement: Statement, _ state: State) -> Effect.Renewal {
    switch statement {
    case .nothing, .revoked, .charged: .unchanged
    case .asItStands, .notRevoked: state == .unknown ? .renews : .unchanged
    case .extended: state.hasSubscription ? .unchanged : .renews
    case .period, .upgrade, .renews: .renews
    case .stops: .stops
    case .changes: .changes
    case .keepsProduct: .keepsProduct
    case .grace: .grace
    case .retries: .retries
    case .over: .over
    }
  }
}
