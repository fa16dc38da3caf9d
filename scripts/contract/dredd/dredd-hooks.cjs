// Dredd loads this file with `require`, and gives `hooks` to no other module.
// dredd.ts, in the same process, sets the global functions.
const hooks = require('hooks')
hooks.beforeEach((transaction, done) => {
  globalThis.beforeDreddTransaction(transaction).then(
    () => done(),
    (error) => {
      transaction.fail = `The transaction could not be prepared: ${error.stack}`
      done()
    },
  )
})
hooks.afterEach((transaction, done) => {
  transaction.fail ||= globalThis.afterDreddTransaction(transaction)
  done()
})
