import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import Testing

struct SchemaTests {
  @Test func everyTypeHasASchemaAndAnExampleAndNothingElseDoes() throws {
    let types = Set(EventType.allCases.map(\.wireName))
    let schemas = Set(
      try SchemaFolder.names("events").filter { $0 != "common.schema.json" && $0 != "headers.schema.json" })
    #expect(schemas == Set(types.map { "\($0).schema.json" }))
    let examples = Set(try SchemaFolder.examples())
    #expect(types.subtracting(examples).isEmpty)
    for example in examples {
      #expect(types.contains { example == $0 || example.hasPrefix("\($0).") }, "\(example) is of no type")
    }
    let golden = try GoldenExamples().all()
    #expect(Set(golden.map(\.name)) == examples)
    #expect(golden.allSatisfy { $0.name == $0.type.wireName || $0.name.hasPrefix($0.type.wireName + ".") })
  }

  @Test func schemasAreNamedAndTakeUnknownMembers() throws {
    for type in EventType.allCases {
      let schema = try JSONDocument(parsing: SchemaFolder.bytes("events/\(type.wireName).schema.json")).root
      #expect(schema["$schema"]?.string == "https://json-schema.org/draft/2020-12/schema")
      #expect(schema["$id"]?.string?.hasSuffix("/\(type.wireName).schema.json") == true)
      #expect(schema["additionalProperties"]?.bool == true)
      #expect(schema["title"]?.string != nil && schema["description"]?.string != nil)
      let properties = try #require(schema["properties"])
      for name in schema["required"]?.elements ?? [] {
        let text = try #require(name.string)
        #expect(properties[text] != nil, "\(type.wireName) requires \(text) and doesn't describe it")
      }
    }
  }

  @Test func theHeadersSchemaListsEveryType() throws {
    let schema = try JSONDocument(parsing: SchemaFolder.bytes("events/headers.schema.json")).root
    let types = schema["properties"]?["ce_type"]?["enum"]?.elements.compactMap(\.string) ?? []
    #expect(types == EventType.allCases.map(\.wireName).sorted())
  }

  @Test func ourCodecsWriteTheExamplesByteForByte() throws {
    for example in try GoldenExamples().all() {
      let golden = try SchemaFolder.example(example.name)
      #expect(
        example.data == golden,
        "\(example.name): \(String(decoding: example.data, as: UTF8.self))")
    }
  }

  @Test func ourCodecsReadTheExamplesAndWriteThemAgain() throws {
    for example in try GoldenExamples().all() {
      let golden = try SchemaFolder.example(example.name)
      #expect(try GoldenExamples.rewritten(example.type, example.name, golden) == golden, "\(example.name)")
    }
  }

  @Test func membersThatTheSchemaRequiresAreRequiredByTheCodec() throws {
    for type in EventType.allCases {
      let schema = try JSONDocument(parsing: SchemaFolder.bytes("events/\(type.wireName).schema.json")).root
      let example = try #require(JSON(parsing: SchemaFolder.example(type.wireName)).object)
      for name in schema["required"]?.elements.compactMap(\.string) ?? [] {
        // Written for readers that are not ours; ours do without: the severity follows from the kind, a part may be none,
        // and the attempt of what waits is the first where nobody says.
        if ["severity", "parts", "attempt", "evidence"].contains(name) { continue }
        let rest = JSON.object(JSONObject(example.members.filter { $0.name != name }.map { ($0.name, $0.value) }))
        var failure: FieldFailure?
        do throws(FieldFailure) {
          _ = try GoldenExamples.rewritten(type, type.wireName, rest.bytes)
        } catch { failure = error }
        let named = failure?.field.split(separator: ".").first.map(String.init)
        #expect(named == name, "\(type.wireName) without \(name)")
      }
    }
  }

  @Test func unknownMembersSurviveWhatIsReceived() throws {
    for type in EventType.receivable {
      let example = try #require(JSON(parsing: SchemaFolder.example(type.wireName)).object)
      let more: [(String, JSON)] = [("x-new", .object(JSONObject([("price", .number("1.50"))])))]
      let data = JSON.object(JSONObject(example.members.map { ($0.name, $0.value) } + more)).bytes
      let received = try ReceivedRecord(type: type, data: data)
      #expect(received.record(source: "/test", at: Instant(milliseconds: 0)).value == data)
      // Passed on by verification and ownership, it is the same bytes inside.
      let noted = VerifiedEvent.noted(FactNoted(type: type, data: data))
      guard case .noted(let fact) = try VerifiedEvent(type: .factNoted, data: noted.data) else {
        Issue.record("\(type.wireName) was not noted")
        continue
      }
      #expect(fact.data == data)
    }
  }

  @Test func unknownMembersOfASignedPayloadSurviveEveryStage() throws {
    let golden = try GoldenExamples()
    let payload = Array(#"{"signedDate":1.5,"newField":{"a":[1,2.50]},"z":"ü"}"#.utf8)
    guard case .verified(var verified)? = try golden.verified()["purchase.verified.v1"],
      case .owned(var owned)? = try golden.owned()["purchase.owned.v1"]
    else {
      Issue.record("the examples are gone")
      return
    }
    verified.parts[0].payload = payload
    guard
      case .verified(let read) = try VerifiedEvent(
        type: .purchaseVerified, data: VerifiedEvent.verified(verified).data)
    else {
      Issue.record("purchase.verified was read as something else")
      return
    }
    #expect(read.parts[0].payload == payload)
    owned.parts = read.parts
    guard case .owned(let again) = try OwnedEvent(type: .purchaseOwned, data: OwnedEvent.owned(owned).data) else {
      Issue.record("purchase.owned was read as something else")
      return
    }
    #expect(again.parts[0].payload == payload)
  }

  /// The ids of the story follow from its bytes: what another implementation must come to.
  @Test func theExampleHeadersAreThoseOfTheExampleRecord() throws {
    let document = try JSONDocument(parsing: SchemaFolder.bytes("examples/headers.json")).root
    let received = try ReceivedRecord(type: .paymentPurchased, data: SchemaFolder.example("payment.purchased.v1"))
    let time = try #require(document["timestamp"]?.string.flatMap { Instant(rfc3339: $0) })
    let topics = TopicSettings()
    #expect(document["topic"]?.string == topics.name(.verified))
    #expect(document["key"]?.string == received.key)
    let envelope = Envelope(
      id: Envelope.derivedID(
        source: received.id, stage: "verification", index: 0, type: .purchaseVerified, key: received.key),
      source: "/purchases/verification", type: .purchaseVerified, subject: received.subject?.text, time: time,
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      origin: Envelope.Origin(
        coordinates: Coordinates(topic: topics.name(.received), partition: 2, offset: 4711), index: 0, count: 1))
    let headers = try #require(document["headers"]).elements.map { header in
      Header(try #require(header["name"]?.string), try #require(header["value"]?.string))
    }
    #expect(envelope.headers == headers)
    #expect(try Envelope(reading: Record(key: nil, value: nil, headers: headers, timestamp: time)) == envelope)
  }
}
