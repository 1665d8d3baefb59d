import PurchasesContracts
import PurchasesCore
import PurchasesHTTPServer

/// The pipeline's door over HTTP (`Schemas/openapi.yaml`). It translates and decides nothing: events and notifications go
/// onto the log as they come, answers come from what the stages have written.
public final class Gateway: Sendable {
  public let port: UInt16
  private let server: HTTPServer
  private let permits: PermitQueries?

  /// Starts to listen. Without a store reader the answers' routes say that they are served elsewhere.
  /// `producer` and `store` stay the caller's to close, after `stop`.
  public init(
    _ settings: Settings, producer: any LogProducer, store: (any StoreReader)?, clock: any Clock,
    probes: Probes = Probes()
  ) throws(GatewayError) {
    try settings.check()
    let permits = store.map { PermitQueries(store: $0, settings: settings) }
    let catalogues = store.map { RememberedCatalogues(store: $0) }
    let routes = Routes(
      intake: EventIntake(settings: settings, producer: producer, clock: clock, permits: permits), permits: permits,
      accounts: store.flatMap { store in catalogues.map { AccountQueries(store: store, catalogues: $0) } },
      products: catalogues.map { ProductQueries(catalogues: $0) },
      tokens: BearerTokens(settings.tokens), clock: clock,
      probes: probes)
    do {
      server = try HTTPServer(settings.http) { routes.answer($0) }
    } catch {
      throw .server(error.description)
    }
    self.permits = permits
    port = server.port
  }

  /// Takes no more connections, ends the waits for permits, lets the requests in hand have their delivery reports for at
  /// most `seconds`. False when some had to be cut; they were not answered 2xx.
  @discardableResult
  public func stop(within seconds: Double) -> Bool {
    permits?.stop()
    return server.stop(within: seconds)
  }
}
