import { operations, type SuccessBody } from '../generated/operations.ts'

/** The paths of operations without parameters, by their last part. */
const LISTS = Object.values(operations)
  .filter(({ method, path }) => method === 'get' && /^\/public\/v1\/[^/{]+$/.test(path))
  .map(({ path }) => [path.split('/').at(-1), path])

export async function getIndex(): Promise<SuccessBody<'getIndex'>> {
  return {
    links: {
      ...Object.fromEntries(LISTS),
      documentation: '/docs/',
      openapi: '/openapi.yaml',
      asyncapi: '/asyncapi.yaml',
    },
  }
}
