// Publishes what a payment queue did, from a Swift back end, and tells when the client may finish.
//
//     swift run PublishPurchase sqlite:purchases-log.sqlite
//     swift run PublishPurchase kafka://127.0.0.1:9092
//
// `purchases run --log …` makes the log's topics when it starts; without them the log refuses the events.
// `swift build` compiles this file on every build.

import PurchasesProducer

let log = CommandLine.arguments.dropFirst().first ?? "sqlite:purchases-log.sqlite"

// One producer per process, shared by all tasks. A log on Kafka takes every librdkafka setting by its own name:
// `kafka: ["security.protocol": "sasl_ssl", "sasl.username": …]`.
let producer = try PurchasesProducer(log: log, settings: .init(source: "/shop/back-end"))

do {
  // What the user's device sent after StoreKit said `.verified` or `.unverified`: the pipeline judges it again itself.
  let receipt = try await producer.publish(
    .purchased(
      environment: .sandbox, account: "7f9c24e5-1c7a-4f0e-9a64-0d6c3b0c2f11", transactionId: "2000000123456789",
      productId: "com.example.coins.100", signedTransaction: "eyJhbGciOiJFUzI1NiJ9.e30.c2lnbmF0dXJl"))
  // From here on the event is durable. The client finishes its transaction when the gateway answers `finishable`:
  // GET /v1/permits/Sandbox/7f9c24e5-1c7a-4f0e-9a64-0d6c3b0c2f11/<permit>
  print("published \(receipt.id) to \(receipt.topic)/\(receipt.partition)/\(receipt.offset)")
  print("ask for the permit \(receipt.permit ?? "-")")

  // Many at once; each has its own result.
  let results = await producer.publish([
    .failed(
      environment: .sandbox, account: "user-17", attemptId: "attempt-1", productId: "com.example.pro.month",
      failure: .init(domain: "SKErrorDomain", code: 2, userCancelled: true)),
    .finished(environment: .sandbox, account: "user-17", attemptId: "attempt-2", transactionId: "2000000123456789"),
  ])
  for result in results { _ = try result.get() }
} catch {
  // `.field` names the member that is wrong. Where a retry may help (the log was down, or it can't be told whether it took
  // the event), publish the same event again: it has one effect.
  print(error.mayRetry ? "try again later: \(error)" : "this will never be accepted: \(error)")
}

await producer.close()
