/** The result of a measurement and its goal. */
import { formatTable } from '../../cli/shell.ts'

export type Goal = { atMost: number } | { atLeast: number }

export interface Result {
  what: string
  unit: 'µs' | 'ms' | 's' | '/s' | 'kB' | 'MB' | ''
  muster: number
  /** The other program, and its value in the same unit. */
  reference?: { name: string; value: number }
  /** To which of these the goal applies: Muster's value, its difference from the reference, or its
   *  ratio to the reference. */
  compared: { by: 'value' | 'difference' | 'ratio'; value: number }
  goal?: Goal
  note?: string
}

type Description = Pick<Result, 'what' | 'unit' | 'goal' | 'note'>

export function figure(description: Description, muster: number): Result {
  return { ...description, muster, compared: { by: 'value', value: muster } }
}

/** Compares by the median over rounds. The two values of a round are measured one right after the
 *  other, so that other load on the machine affects both. */
export function comparison(
  description: Description,
  by: 'difference' | 'ratio',
  name: string,
  rounds: Round[],
): Result {
  const values = rounds.map(({ muster, reference }) =>
    by === 'ratio' ? muster / reference : muster - reference,
  )
  return {
    ...description,
    muster: median(rounds.map(({ muster }) => muster)),
    reference: { name, value: median(rounds.map(({ reference }) => reference)) },
    compared: { by, value: median(values) },
  }
}

export interface Round {
  muster: number
  reference: number
}

/** Undefined without a goal. */
export function isMet({ goal, compared }: Result): boolean | undefined {
  if (!goal) return undefined
  return 'atMost' in goal ? compared.value <= goal.atMost : compared.value >= goal.atLeast
}

export function median(values: number[]): number {
  return percentile(values, 0.5)
}

/** Nearest rank: the smallest value that is at least as large as this share of the values. */
export function percentile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN
}

export function formatResults(results: (Result & { database: string })[]): string {
  return formatTable(
    ['database', 'measure', 'Muster', 'reference', 'compared', 'goal', 'met', ''],
    results.map((result) => {
      const { database, what, unit, muster, reference, compared, note = '' } = result
      const referenceText = reference ? `${amount(reference.value, unit)} ${reference.name}` : ''
      const comparison = {
        value: '',
        difference: signed(compared.value, unit),
        ratio: compared.value.toFixed(2),
      }[compared.by]
      return [
        database,
        what,
        amount(muster, unit),
        referenceText,
        comparison,
        goalText(result),
        metText(result),
        note,
      ]
    }),
  )
}

function metText(result: Result): string {
  const met = isMet(result)
  if (met === undefined) return ''
  return met ? 'yes' : 'NO'
}

function goalText({ goal, compared, unit }: Result): string {
  if (!goal) return ''
  const [sign, limit] = 'atMost' in goal ? ['≤', goal.atMost] : ['≥', goal.atLeast]
  return `${sign} ${compared.by === 'ratio' ? limit : amount(limit, unit)}`
}

function amount(value: number, unit: Result['unit']): string {
  const digits = unit === 's' || (['', 'ms', 'kB'].includes(unit) && value < 100) ? 1 : 0
  const number = value.toLocaleString('en', { maximumFractionDigits: digits })
  return unit === '' || unit === '/s' ? `${number}${unit}` : `${number} ${unit}`
}

function signed(value: number, unit: Result['unit']): string {
  return `${value < 0 ? '' : '+'}${amount(value, unit)}`
}
