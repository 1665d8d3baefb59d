import Foundation
import PurchasesRunner
import PurchasesTestKit
import Testing

/// Each stage ended at each numbered step of the commit protocol, and once more in the recovery that follows: every event
/// has one effect all the same.
@Suite(.serialized) struct CrashPointTests {
  static let stages = ["verification", "ownership", "entitlements", "auditing"]

  @Test(arguments: CrashPoint.allCases, [1, 2])
  func oneEffectWhereverAStageEnds(point: CrashPoint, count: Int) throws {
    let program = try Tool(["PURCHASES_LOG": "sqlite:log.db", "PURCHASES_STORE": "sqlite:store.db"])
    try program.write("catalogue.json", Tool.catalogue)
    try KillTests.publish(program)
    for stage in Self.stages {
      let isRecovery = point == .recoveryRead || point == .recoveryPublished
      // Only what lies in the store and not in the log is recovered, and verification has no store.
      if isRecovery, stage != "verification" {
        #expect(try end(stage, at: .storeCommitted, 1, program) == -9, "\(stage)")
        // A crash leaves one batch behind per partition: the second time is on another one.
        #expect(try end(stage, at: point, 1, program) == -9, "\(stage)")
      } else if !isRecovery {
        // A batch holds whatever has come: one is sure, another where there was more than one batch.
        let status = try end(stage, at: point, count, program)
        #expect(count == 1 ? status == -9 : [-9, 0].contains(status), "\(stage)")
      }
      #expect(try end(stage, at: nil, 0, program) == 0, "\(stage) after \(point) \(count)")
    }
    try KillTests.judge(program, "\(point) \(count)")
  }

  private func end(_ stage: String, at point: CrashPoint?, _ count: Int, _ program: Tool) throws -> Int32 {
    let environment = program.environment
    defer { program.environment = environment }
    if let point { program.environment["PURCHASES_CRASH_AT"] = "\(point.rawValue):\(count)" }
    // A name of its own, so that the next one takes the place of the one that ended.
    let process = try program.process(
      ["stage", stage, "--until-idle", "--instance", "one"] + Tool.stageOptions, output: FileHandle.nullDevice,
      errors: FileHandle.nullDevice)
    try process.run()
    process.waitUntilExit()
    return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
  }
}
