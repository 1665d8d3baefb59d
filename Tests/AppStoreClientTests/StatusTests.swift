import PurchasesAppStoreClient
import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import Testing

/// The table of statuses, whole.
struct StatusTests {
  @Test func everyDocumentedStatusHasItsMeaning() {
    #expect(VerifyReceiptStatus(0) == .valid)
    #expect(VerifyReceiptStatus(21_000) == .requestFault(21_000))
    #expect(VerifyReceiptStatus(21_001) == .requestFault(21_001))
    #expect(VerifyReceiptStatus(21_002) == .malformedOrBusy)
    #expect(VerifyReceiptStatus(21_003) == .notAuthentic)
    #expect(VerifyReceiptStatus(21_004) == .wrongSecret)
    #expect(VerifyReceiptStatus(21_005) == .tryLater(21_005))
    #expect(VerifyReceiptStatus(21_006) == .validExpired)
    #expect(VerifyReceiptStatus(21_007) == .isSandbox)
    #expect(VerifyReceiptStatus(21_008) == .isProduction)
    #expect(VerifyReceiptStatus(21_009) == .tryLater(21_009))
    #expect(VerifyReceiptStatus(21_010) == .accountUnknown)
  }

  @Test func internalErrorsFollowWhatTheySay() {
    for status: Int64 in 21_100...21_199 {
      #expect(VerifyReceiptStatus(status) == .tryLater(status))
      #expect(VerifyReceiptStatus(status, isRetryable: true) == .tryLater(status))
      #expect(VerifyReceiptStatus(status, isRetryable: false) == .notRetryable(status))
    }
    // What says of itself that it can't be retried is believed of internal errors only.
    #expect(VerifyReceiptStatus(21_005, isRetryable: false) == .tryLater(21_005))
  }

  @Test func whatNobodyKnowsIsUnknownAndNeverFinal() {
    for status: Int64 in [-1, 1, 2, 20_999, 21_011, 21_099, 21_200, .min, .max] {
      #expect(VerifyReceiptStatus(status) == .unknown(status))
    }
    #expect(VerifyReceiptStatus(nil) == .unknown(nil))
  }
}

struct ServerAPICodeTests {
  @Test func theTableIsOpen() {
    #expect(ServerAPICode(rawValue: 4_040_010).name == "TransactionIdNotFound")
    #expect(ServerAPICode(rawValue: 4_999_999).name == nil)
    #expect(!ServerAPICode(rawValue: 4_999_999).isRetryable)
    #expect(ServerAPICode.known.count > 60)
  }

  @Test func exactlyTheCodesThatAppleCallsSoAreRetryable() {
    let retryable = ServerAPICode.known.filter(\.isRetryable).map(\.rawValue)
    #expect(retryable == [4_040_002, 4_040_004, 4_040_006, 4_290_000, 5_000_000, 5_000_001])
  }
}

struct HostTests {
  @Test func secretsGoNowhereInTheClear() throws {
    #expect(try AppleHost("https://example.com/").url == "https://example.com")
    #expect(try AppleHost("http://127.0.0.1:8080").url == "http://127.0.0.1:8080")
    #expect(try AppleHost("http://[::1]:80").url == "http://[::1]:80")
    for (text, failure) in [
      ("http://example.com", AppleHostFailure.inTheClear), ("http://localhost.example.com", .inTheClear),
      ("http://127.0.0.1.example.com", .inTheClear), ("http://[::1].example.com", .inTheClear),
      ("ftp://example.com", .notHTTP), ("example.com", .notHTTP), ("https://", .notAHost),
      ("https://example.com/path", .notAHost), ("https://user@example.com", .notAHost),
      ("https://exa mple.com", .notAHost), ("https://example.com?a", .notAHost),
    ] {
      #expect(throws: failure, "\(text)") { try AppleHost(text) }
    }
  }

  @Test func aSecretIsNeverShown() {
    let secret = Secret("canary-4711")
    let settings = ReceiptClient.Settings(secret: secret)
    var dumped = ""
    dump(settings, to: &dumped)
    dump(secret, to: &dumped)
    let shown = "\(secret) \(String(reflecting: secret)) \(settings) \(String(reflecting: settings)) \(dumped)"
    #expect(shown.contains("***"))
    #expect(!shown.contains("canary"))
  }
}
