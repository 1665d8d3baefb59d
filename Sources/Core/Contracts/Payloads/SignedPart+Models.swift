import PurchasesJSON

extension SignedPart {
  /// The payload in its model. Meant for a part of that kind; of another kind it reads little.
  public func transaction() throws(FieldFailure) -> PayloadReading<SignedTransaction> { PayloadReading(try document()) }

  public func renewalInfo() throws(FieldFailure) -> PayloadReading<SignedRenewalInfo> { PayloadReading(try document()) }

  public func appTransaction() throws(FieldFailure) -> PayloadReading<SignedAppTransaction> {
    PayloadReading(try document())
  }

  /// What the model of the part's kind couldn't hold: how one learns that Apple has added something.
  public func findings() throws(FieldFailure) -> PayloadFindings {
    switch kind {
    case .transaction: try transaction().findings
    case .renewalInfo: try renewalInfo().findings
    case .appTransaction: try appTransaction().findings
    // Its members are chosen here, and its unknown attributes counted in the evidence.
    case .appReceipt: PayloadFindings()
    case .notification: PayloadReading<SignedNotification>(try document()).findings
    }
  }
}
