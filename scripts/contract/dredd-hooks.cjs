// Dredd loads hooks by `require` and gives them to nobody else: this passes them on to the test, which runs in the same process.
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
