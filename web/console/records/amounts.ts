/** Amounts of money. The contract counts them in minor units, such as cents, and the console shows
 *  and reads them as people write them. `x-currency` of a schema names the field beside the amount
 *  that has its currency. */
import { code as currencyByCode } from 'currency-codes'
import type { Schema } from '../../../scripts/model/schema.ts'
import type { FormField } from './field.ts'

/** The value with its currency: `€125.00`. Undefined if there is no currency in `item`, or the value
 *  is not a number. */
export function amountOf(
  schema: Schema,
  value: unknown,
  item: Readonly<Record<string, unknown>> | undefined,
): string | undefined {
  const currency = item?.[schema['x-currency'] ?? '']
  return typeof value === 'number' && typeof currency === 'string'
    ? money(value, currency)
    : undefined
}

/** `minor`: a whole number of minor units. */
export function money(minor: number | string, currency: string): string {
  // For some currencies, Intl shows another number of decimals, such as 0 for HUF.
  const digits = digitsOf(currency)
  const format = new Intl.NumberFormat('en', {
    style: 'currency',
    currency,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  })
  // A string such as `12500e-2` is formatted exactly. A number would be rounded.
  return format.format(`${minor}e-${digits}` as `${number}`)
}

/** The contract counts the minor units of ISO 4217. */
function digitsOf(currency: string): number {
  return currencyByCode(currency)?.digits ?? 2
}

/** The name of the field. An amount loses the suffix `_minor`: it is stored in minor units, but
 *  shown in major units. */
export function shownName(name: string, schema: Schema): string {
  return schema['x-currency'] === undefined ? name : name.replace(/_minor$/, '')
}

/** Whether the options are codes of currencies. No other options of the contract are three capital
 *  letters. */
export function hasCurrencies({ enum: values = [] }: Schema): boolean {
  return (
    values.length > 0 && values.every((value) => value === null || /^[A-Z]{3}$/.test(`${value}`))
  )
}

const CURRENCY_NAMES = new Intl.DisplayNames('en', { type: 'currency' })

/** `Euro`. The code of a currency without a name. */
export function shortCurrencyName(code: string): string {
  return CURRENCY_NAMES.of(code) ?? code
}

/** `Euro (EUR)` */
export function currencyName(code: string): string {
  const name = shortCurrencyName(code)
  return name === code ? code : `${name} (${code})`
}

/** Undefined while the user has not chosen a currency. */
function chosenCurrency(draft: URLSearchParams, { currency = '' }: FormField): string | undefined {
  // currency-codes lacks the newest ones, for example XCG.
  return /^[A-Z]{3}$/.exec(draft.get(currency) ?? '')?.[0]
}

/** Writes the amount as people type it: `49.90`. */
export function writeAmount(draft: URLSearchParams, field: FormField, value: unknown): void {
  const digits = digitsOf(chosenCurrency(draft, field) ?? '')
  draft.set(
    field.path,
    typeof value === 'number' ? (value / 10 ** digits).toFixed(digits) : String(value ?? ''),
  )
}

/** The typed amount in minor units. Undefined if it is empty, or not an amount in its currency. */
export function typedAmount(draft: URLSearchParams, field: FormField): number | undefined {
  return parseAmount(draft.get(field.path) ?? '', digitsOf(chosenCurrency(draft, field) ?? ''))
}

/** Digits in groups, as in `1,234,567`, `1.234.567` and `12,34,567`. */
const GROUPED = /^[1-9]\d{0,2}([.,])(?:\d{2,3}\1)*\d{3}$/

/** Reads `1,234.50`, `1.234,50`, `1 234,50` and `1'234.50` as the same amount. */
function parseAmount(text: string, digits: number): number | undefined {
  const compact = text.replace(/[\s'’]/g, '')
  const [, whole = '', point = '', fraction = ''] = /^(.+)([.,])(\d+)$/.exec(compact) ?? []
  // The last point or comma begins the decimals, unless it separates groups of digits.
  const hasDecimals = point !== '' && fraction.length <= digits && !whole.includes(point)
  const [integer, decimals] = hasDecimals ? [whole, fraction] : [compact, '']
  if (!/^\d+$/.test(integer) && !GROUPED.test(integer)) return undefined
  return Number(integer.replace(/[.,]/g, '') + decimals.padEnd(digits, '0'))
}

/** Undefined if the field is empty, or has an amount that the contract permits. */
export function amountProblem(draft: URLSearchParams, field: FormField): string | undefined {
  if ((draft.get(field.path) ?? '').trim() === '') return undefined
  const currency = chosenCurrency(draft, field)
  if (currency === undefined) return undefined
  const { minimum = 0, maximum = Number.MAX_SAFE_INTEGER } = field.schema
  const amount = typedAmount(draft, field)
  if (amount === undefined)
    return `must be a number such as ${money(123_450, currency).replace(/[^\d.,]/g, '')}.`
  return amount < minimum || amount > maximum
    ? `must be from ${money(minimum, currency)} to ${money(maximum, currency)}.`
    : undefined
}

/** `€49.90` for what the user has typed. Undefined if that is not a valid amount. */
export function amountPreview(draft: URLSearchParams, field: FormField): string | undefined {
  const amount = typedAmount(draft, field)
  const currency = chosenCurrency(draft, field)
  return amount === undefined || currency === undefined || amountProblem(draft, field)
    ? undefined
    : money(amount, currency)
}

/** The name of the input with the preview that the user has seen. */
export const seenName = ({ path }: FormField): string => `${path}:seen`

/** Whether the form would save an amount that the user has not seen as the console reads it. */
export function isUnseen(draft: URLSearchParams, field: FormField): boolean {
  const preview = amountPreview(draft, field)
  return preview !== undefined && preview !== draft.get(seenName(field))
}
