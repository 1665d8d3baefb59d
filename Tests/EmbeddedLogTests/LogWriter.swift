import PurchasesTestKit

extension Program {
  convenience init(_ arguments: [String]) throws { try self.init("PurchasesLogWriter", arguments) }
}
