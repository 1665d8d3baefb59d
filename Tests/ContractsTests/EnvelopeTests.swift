import PurchasesContracts
import PurchasesCore
import Testing

struct EnvelopeTests {
  let full = Envelope(
    id: "e1", source: "/purchases/verification", type: .purchaseVerified, subject: "Sandbox/7",
    time: Instant(milliseconds: 1_764_470_000_123),
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    origin: Envelope.Origin(
      coordinates: Coordinates(topic: "purchases.received", partition: 3, offset: 9_007_199_254_740_993), index: 1,
      count: 2))

  func read(_ headers: [Header]) throws(EnvelopeFailure) -> Envelope {
    try Envelope(reading: Record(key: nil, value: nil, headers: headers, timestamp: Instant(milliseconds: 0)))
  }

  func failure(_ headers: [Header]) -> EnvelopeFailure? {
    do throws(EnvelopeFailure) {
      _ = try read(headers)
      return nil
    } catch { return error }
  }

  func replacing(_ name: String, _ value: String) -> [Header] {
    full.headers.map { $0.name == name ? Header(name, value) : $0 }
  }

  @Test func headersAreReadAsTheyWereWritten() throws {
    #expect(try read(full.headers) == full)
    #expect(try read(full.headers.reversed()) == full)
    for type in EventType.allCases {
      let bare = Envelope(id: "1", source: "/s", type: type)
      #expect(try read(bare.headers) == bare)
      #expect(bare.headers.map(\.name) == ["content-type", "ce_specversion", "ce_id", "ce_source", "ce_type"])
    }
  }

  @Test func otherHeadersMayStandBeside() throws {
    let other = [Header("x", [0xff]), Header("x", nil), Header("ce_partitionkey", "k"), Header("CE_ID", "other")]
    #expect(try read(other + full.headers) == full)
  }

  @Test func aContentTypeMayBeAbsentOrHaveParameters() throws {
    #expect(try read(full.headers.filter { $0.name != "content-type" }) == full)
    #expect(try read(replacing("content-type", "application/json; charset=utf-8")) == full)
  }

  @Test(arguments: ["ce_specversion", "ce_id", "ce_source", "ce_type"])
  func whatMustBeThereIsNamed(_ name: String) {
    #expect(failure(full.headers.filter { $0.name != name }) == .missing(name))
    if name != "ce_specversion" { #expect(failure(replacing(name, "")) == .malformed(name)) }
  }

  @Test(arguments: ["ce_originpartition", "ce_originoffset", "ce_outputindex", "ce_outputcount"])
  func anOriginIsWholeOrNotThere(_ name: String) {
    #expect(failure(full.headers.filter { $0.name != name }) == .missing(name))
    for bad in ["", "-1", "x", "1.0", "99999999999999999999"] {
      #expect(failure(replacing(name, bad)) == .malformed(name), "\(name) = \(bad)")
    }
  }

  @Test(arguments: [
    ("ce_specversion", "0.3"), ("ce_specversion", "1"), ("content-type", "application/cloudevents+json"),
    ("content-type", "text/plain"), ("ce_time", "yesterday"), ("ce_time", "2026-02-30T00:00:00Z"), ("ce_time", ""),
  ])
  func whatIsMalformedIsNamed(_ name: String, _ value: String) {
    #expect(failure(replacing(name, value)) == .malformed(name))
  }

  @Test(arguments: ["ce_id", "ce_source", "ce_type", "ce_subject", "ce_time", "ce_traceparent", "content-type"])
  func aHeaderTwiceOrNotTextOrTooLongIsNamed(_ name: String) {
    #expect(failure(full.headers + [Header(name, "again")]) == .malformed(name))
    #expect(failure(full.headers.filter { $0.name != name } + [Header(name, [0xff])]) == .malformed(name))
    #expect(failure(full.headers.filter { $0.name != name } + [Header(name, nil)]) == .malformed(name))
    #expect(failure(replacing(name, String(repeating: "x", count: 1025))) == .malformed(name))
  }

  @Test func typesAndVersionsAreTold() {
    #expect(failure(replacing("ce_type", "com.example.other")) == .unknownType("com.example.other"))
    #expect(failure(replacing("ce_type", "payment.purchased")) == .unknownType("payment.purchased"))
    for bad in ["payment.purchased.v", "payment.purchased.v0", "payment.purchased.v-1", "payment.purchased.vx", ".v1"] {
      #expect(failure(replacing("ce_type", bad)) == .unknownType(bad))
    }
    #expect(failure(replacing("ce_type", "payment.purchased.v2")) == .newerVersion(.paymentPurchased, 2))
    // What is told of a foreign type is short and prints.
    #expect(failure(replacing("ce_type", "bad\n")) == .malformed("ce_type"))
    let long = "bad." + String(repeating: "x", count: 500)
    #expect(failure(replacing("ce_type", long)) == .unknownType("bad." + String(repeating: "x", count: 60)))
  }

  @Test func failuresNameTheHeaderAndNotItsContent() {
    let secret = "canary-4711"
    for name in ["ce_specversion", "ce_time", "ce_originoffset", "content-type"] {
      let failure = failure(replacing(name, secret))
      #expect(failure?.description.contains(name) == true)
      #expect(failure?.description.contains(secret) == false)
    }
  }

  @Test func derivedIdsDifferWhereAnythingDoes() {
    func id(_ source: String, _ stage: String, _ index: Int, _ type: EventType, _ key: String?) -> String {
      Envelope.derivedID(source: source, stage: stage, index: index, type: type, key: key)
    }
    let first = id("a", "verification", 0, .purchaseVerified, "k")
    #expect(first == id("a", "verification", 0, .purchaseVerified, "k"))
    let others = [
      id("b", "verification", 0, .purchaseVerified, "k"), id("a", "ownership", 0, .purchaseVerified, "k"),
      id("a", "verification", 1, .purchaseVerified, "k"), id("a", "verification", 0, .purchaseRejected, "k"),
      id("a", "verification", 0, .purchaseVerified, "l"), id("a", "verification", 0, .purchaseVerified, nil),
    ]
    #expect(Set(others + [first]).count == 7)
  }
}
