// The smallest service on the same framework. Plain JavaScript: stripping types takes memory.
import Koa from 'koa'

const app = new Koa()
app.use((ctx) => {
  ctx.body = {}
})
const server = app.listen(0, '127.0.0.1', () => process.send(server.address().port))
