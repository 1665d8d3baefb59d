extension Lifecycle {
  /// What comes of a notification: for access or credits, and for what is known of how a subscription goes on.
  public struct Effect: Sendable, Hashable {
    public var access: Access
    public var renewal: Renewal

    public init(access: Access, renewal: Renewal) {
      self.access = access
      self.renewal = renewal
    }

    public enum Access: String, Sendable, Hashable, CaseIterable {
      case unchanged, grants, restores, extends, replaces, ends, revokes
      case addsCredits = "adds credits"
      case takesCredits = "takes credits"
      case returnsCredits = "returns credits"

      public var meaning: String {
        switch self {
        case .unchanged: "What the account may use stays, and so does its end."
        case .grants: "The account may use more than before, at once."
        case .restores: "What a refund took away is there again."
        case .extends: "What it may use lasts longer."
        case .replaces: "What the old product gave ends, what the new one gives begins, at once."
        case .ends: "What it may use ends, its time being over."
        case .revokes: "What it may use ends before its time."
        case .addsCredits: "Credits are added."
        case .takesCredits: "The credits of the purchase are taken back, be they spent or not."
        case .returnsCredits: "Credits that a refund took are added again."
        }
      }
    }

    public enum Renewal: String, Sendable, Hashable, CaseIterable {
      case unchanged, renews
      case stops = "will not renew"
      case changes = "will change"
      case keepsProduct = "will not change"
      case grace = "in grace"
      case retries = "in billing retry"
      case over

      public var meaning: String {
        switch self {
        case .unchanged: "Nothing new is known of how it goes on."
        case .renews: "Auto-renew is on."
        case .stops: "Auto-renew is off; no more than that."
        case .changes: "The next period will be of another product."
        case .keepsProduct: "The next period will be of the same product."
        case .grace: "Apple tries to charge, and access holds until the grace date."
        case .retries: "Apple tries to charge, and access holds no longer than the period."
        case .over: "Auto-renew is off, and Apple tries no more."
        }
      }
    }

    /// The cell's text.
    public var text: String {
      switch (access, renewal) {
      case (.unchanged, .unchanged): "-"
      case (.unchanged, _): renewal.rawValue
      case (_, .unchanged): "**\(access.rawValue)**"
      default: "**\(access.rawValue)**, \(renewal.rawValue)"
      }
    }
  }
}
