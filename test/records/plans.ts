/** What PostgreSQL reads for the statements of a request. */
import type { Db } from '../../records/database/open.ts'

interface PlanNode {
  'Node Type': string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: PlanNode[]
}

/** The rows that nodes of these types read, with those that do not match. */
function countRead({ Plans = [], ...node }: PlanNode, types: RegExp): number {
  const rows = node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)
  const own = types.test(node['Node Type']) ? rows * node['Actual Loops'] : 0
  return Plans.reduce((sum, plan) => sum + countRead(plan, types), own)
}

/** Runs `work`, and then again each statement that it sent and that matches `statement`. Counts the rows that
 *  nodes of its plan read whose type matches `node`. */
export async function withRowsRead<T>(
  { read }: Db,
  { statement, node }: { statement: RegExp; node: RegExp },
  work: () => Promise<T>,
): Promise<{ result: T; statements: { sql: string; rowsRead: number }[] }> {
  const sent: { sql: string; bindings: string[] }[] = []
  const collect = (query: (typeof sent)[number]): void =>
    void (statement.test(query.sql) && sent.push(query))
  read.on('query', collect)
  const result = await work()
  read.off('query', collect)
  const explained = sent.map(async ({ sql, bindings }) => {
    const text = `explain (analyze, format json) ${sql.replaceAll(/\$\d+/g, '?')}`
    const { rows } = await read.raw(text, bindings)
    return { sql, rowsRead: countRead(rows[0]['QUERY PLAN'][0].Plan, node) }
  })
  return { result, statements: await Promise.all(explained) }
}
