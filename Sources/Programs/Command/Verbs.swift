/// Every command, in the order of the help.
let verbs: [Verb] =
  [
    .demo, .run, .gateway, .stage, .publish, .backfill, .appleGet, .appleTest, .appleConsumption, .appleAccount,
    .appleExtend, .appleFinish, .tail, .verify, .state, .explain, .products, .catalogueCheck, .cataloguePublish,
    .catalogueHistory,
    .catalogueDiff, .ledger, .replay, .auditVerify, .auditProve, .auditCheck, .auditExport, .quarantineList, .topics,
    .doctor, .appstore, .appstoreSign,
  ] + Verb.orders
