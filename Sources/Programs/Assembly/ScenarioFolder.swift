import Foundation
import PurchasesJSON
import PurchasesLocalAppStore

/// What a scenario leaves for people: the root to configure, the catalogue of its products, its report.
public enum ScenarioFolder {
  public static let root = "scenario-root.der"
  public static let catalogue = "scenario-catalogue.json"

  public static func keep(_ scenario: Scenario, in folder: String) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try Data(scenario.authority.root.der).write(to: URL(fileURLWithPath: folder + "/" + root))
    try Data(DemoCatalogue.json).write(to: URL(fileURLWithPath: folder + "/" + catalogue))
  }

  public static func json(_ report: PlayReport) -> [UInt8] {
    var writer = JSONWriter()
    writer.object { report.write(&$0) }
    return writer.bytes + [0x0a]
  }
}
