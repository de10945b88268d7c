import { afterAll, afterEach, beforeAll } from 'vitest'
import { beginFile, endFile, endTest } from './leftovers'

beforeAll(beginFile)
afterEach(endTest)
afterAll(endFile)
