/// What every store refuses, in one wording.
extension StoreFailure {
  public static func ownedByAnotherGroup(_ stage: String, _ group: String) -> StoreFailure {
    StoreFailure(
      .refused,
      "stage \(stage) of this store belongs to another consumer group than \(group); give each group a store of its own"
    )
  }

  public static func newerSchema(_ present: Int64, known: Int64) -> StoreFailure {
    StoreFailure(
      .refused, "the store's schema has version \(present), this program knows \(known): upgrade the program")
  }

  public static func notMigrated(_ present: Int64, needed: Int64) -> StoreFailure {
    StoreFailure(.refused, "the store's schema has version \(present), this program needs \(needed): migrate it first")
  }
}
