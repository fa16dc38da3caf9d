/** Reads the status of a response from the bytes of its connection, before the parser of undici gets
 *  them. That parser refuses a whole response because of one odd header. Then the receiver may have
 *  done its work all the same, so a valid status line decides (service-spec §6 "Delivery rules", 1). */

/** RFC 9112 §4. The end may be a single LF: §2.2. */
const STATUS_LINE = /^HTTP\/1\.[01] ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?\r?$/
/** The start of a status line, up to the last digit of the status. */
const CONTINUE = /^HTTP\/1\.[01] 100/
const LAST_DIGIT = 'HTTP/1.1 10'.length
const LF = 0x0a
const TWO = 0x32
const MAX_LINE_BYTES = 16 * 1024

/** One response, with the interim responses before it. */
export class StatusReader {
  /** Undefined: the status line of the final response is not complete, or not valid. */
  status: number | undefined
  /** The text of the current line, without its end. */
  #line = ''
  #isInHeaders = false
  #isOver = false

  /** Reads the next bytes. Changes the status of an interim response from 100 to 102: undici closes
   *  the connection after a 100 that it did not ask for, but RFC 9110 §15.2 tells clients to expect
   *  one at any time. */
  read(bytes: Buffer): void {
    let lineStart = -this.#line.length
    let from = 0
    while (!this.#isOver && from < bytes.length) {
      const end = bytes.indexOf(LF, from)
      this.#line += bytes.toString('latin1', from, end === -1 ? bytes.length : end)
      const lastDigit = lineStart + LAST_DIGIT
      // A negative index belongs to earlier bytes, which have been changed.
      if (!this.#isInHeaders && lastDigit >= 0 && CONTINUE.test(this.#line)) bytes[lastDigit] = TWO
      this.#isOver = this.#line.length > MAX_LINE_BYTES
      if (this.#isOver || end === -1) return
      this.#endLine()
      from = lineStart = end + 1
    }
  }

  #endLine(): void {
    const line = this.#line
    this.#line = ''
    if (this.#isInHeaders) {
      this.#isInHeaders = line !== '' && line !== '\r'
      return
    }
    const status = Number(STATUS_LINE.exec(line)?.[1])
    // After 101, the connection has another protocol.
    this.#isInHeaders = status < 200 && status !== 101
    this.#isOver = !this.#isInHeaders
    if (status >= 200) this.status = status
  }
}
