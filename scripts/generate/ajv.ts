import { Ajv, type CodeOptions } from 'ajv'
import addFormats from 'ajv-formats'
import { ANNOTATIONS, type Schema } from '../model/schema.ts'

/** Keywords that do not affect validation. */
const WITHOUT_EFFECT = [
  ...ANNOTATIONS,
  // `oneOf` validates without it.
  'discriminator',
  // `prepareProperty` of compiler.ts adds the default again where it applies.
  'default',
]

/** For functions that become the text of an ES module. */
export const MODULE_CODE: CodeOptions = { source: true, esm: true, lines: true }

/** For functions that check a few values: optimizing the code would take longer than it saves. */
export const CHECKING_CODE: CodeOptions = { optimize: false }

export function newAjv(code: CodeOptions): Ajv {
  const ajv = new Ajv({
    strict: true,
    strictRequired: false,
    allowUnionTypes: true,
    allErrors: true,
    useDefaults: true,
    // Each schema becomes one function. Inlined schemas would make the module many times larger.
    inlineRefs: false,
    code,
  })
  addFormats.default(ajv)
  return ajv
}

export function withoutAnnotations(schema: Schema): Schema {
  return Object.fromEntries(
    Object.entries(schema).filter(
      ([keyword]) => !WITHOUT_EFFECT.includes(keyword) && !keyword.startsWith('x-'),
    ),
  )
}
