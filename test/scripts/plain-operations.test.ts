/** What the toolchain reads from an operation of any OpenAPI document. */
import { expect, test } from 'vitest'
import { toOperationId } from '../../scripts/model/plain-operations.ts'

test.each([
  { operationId: 'issues/list-for-repo', want: 'issuesListForRepo' },
  { operationId: 'ListPets', want: 'listPets' },
  { operationId: undefined, want: 'getUsersUserId' },
  { operationId: '', want: 'getUsersUserId' },
  { operationId: 'delete', want: 'deleteOperation' },
  // A module is in strict mode: it cannot declare a function with these names.
  { operationId: 'eval', want: 'evalOperation' },
  { operationId: 'arguments', want: 'argumentsOperation' },
  { operationId: '2fa', want: 'op2faOperation' },
])('the operation $operationId has the function $want', ({ operationId, want }) => {
  expect(toOperationId(operationId, 'get', '/users/{user_id}')).toBe(want)
})
