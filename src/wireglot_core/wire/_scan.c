/* One pass over a JSON text: where its top-level members are, and that nothing in it needs a closer look.

   An optional part of wireglot_core.wire.scan, which says what these functions promise. Whatever is rare here is
   answered with None, and then read by the Python code: this file need only be right about common texts.

   Reading never leaves the text: a bytes object ends with a zero byte, no step goes on behind one, and blocks
   are read only where all of them is inside. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

typedef const unsigned char *Place;

enum { MAX_DEPTH = 512, MAX_NUMBER = 128 };

static int is_digit(unsigned char byte) { return byte >= '0' && byte <= '9'; }

static int is_continuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

static int is_hex(unsigned char byte)
{
    return is_digit(byte) || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f');
}

static Place skip_space(Place at)
{
    while (*at <= ' ' && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

/* The first byte that is not plain ASCII of a string: a quote, a backslash, a control, or part of UTF-8. */
static Place skip_plain(Place at, Place end)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), space = _mm_set1_epi8(' ');
    for (Place last = end - 16 /* at least in the head of the bytes object */; at <= last; at += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)at);
        __m128i odd = _mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, backslash));
        odd = _mm_or_si128(odd, _mm_cmplt_epi8(block, space)); /* signed: UTF-8 is less than a space, too */
        int found = _mm_movemask_epi8(odd);
        if (found)
            return at + __builtin_ctz((unsigned)found);
    }
#endif
    while (*at >= ' ' && *at < 0x80 && *at != '"' && *at != '\\')
        at++;
    return at;
}

/* Behind a character of two to four bytes; NULL where it is none (RFC 3629: shortest form, no surrogates). */
static Place skip_utf8(Place at)
{
    unsigned char first = at[0], second = at[1];
    if (!is_continuation(second))
        return NULL;
    if (first >= 0xC2 && first <= 0xDF)
        return at + 2;
    if (!is_continuation(at[2]))
        return NULL;
    if (first >= 0xE0 && first <= 0xEF) {
        int bad = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F);
        return bad ? NULL : at + 3;
    }
    if (first < 0xF0 || first > 0xF4 || !is_continuation(at[3]))
        return NULL;
    return (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F) ? NULL : at + 4;
}

/* Behind an escape; NULL where it is none, or half a surrogate pair. `at`: its backslash. */
static Place skip_escape(Place at)
{
    static const unsigned char is_short[256] = {
        ['"'] = 1, ['\\'] = 1, ['/'] = 1, ['b'] = 1, ['f'] = 1, ['n'] = 1, ['r'] = 1, ['t'] = 1};
    if (is_short[at[1]])
        return at + 2;
    if (at[1] != 'u')
        return NULL;
    for (int digit = 2; digit < 6; digit++)
        if (!is_hex(at[digit]))
            return NULL;
    if ((at[2] | 0x20) != 'd' || at[3] < '8')
        return at + 6;
    /* The first half, \ud800 to \udbff: the second follows, \udc00 to \udfff. */
    if ((at[3] | 0x20) >= 'c' || at[6] != '\\' || at[7] != 'u' || (at[8] | 0x20) != 'd')
        return NULL;
    return (at[9] | 0x20) >= 'c' && is_hex(at[9]) && is_hex(at[10]) && is_hex(at[11]) ? at + 12 : NULL;
}

/* Behind the closing quote; NULL where it is no string. `at`: behind the opening one. */
static Place skip_string(Place at, Place end)
{
    while (at != NULL) {
        at = skip_plain(at, end);
        if (*at == '\\')
            at = skip_escape(at);
        else if (*at == '"')
            return at + 1;
        else if (*at < 0x80)
            return NULL;
        else
            while (at != NULL && *at >= 0x80)
                at = skip_utf8(at);
    }
    return NULL;
}

/* Behind a number; NULL where it is none, or may be out of the range of a double. */
static Place skip_number(Place at)
{
    Place start = at;
    at += *at == '-';
    if (!is_digit(*at))
        return NULL;
    if (*at++ != '0')
        while (is_digit(*at))
            at++;
    if (*at == '.') {
        if (!is_digit(*++at))
            return NULL;
        while (is_digit(*at))
            at++;
    }
    if ((*at | 0x20) == 'e') {
        at++;
        at += *at == '+' || *at == '-';
        if (!is_digit(*at))
            return NULL;
        at += 1 + is_digit(at[1]);
        if (is_digit(*at))
            return NULL;
    }
    return at - start <= MAX_NUMBER ? at : NULL;
}

static Place skip_scalar(Place at, Place end)
{
    switch (*at) {
    case '"':
        return skip_string(at + 1, end);
    case 't':
        return end - at >= 4 && memcmp(at, "true", 4) == 0 ? at + 4 : NULL;
    case 'f':
        return end - at >= 5 && memcmp(at, "false", 5) == 0 ? at + 5 : NULL;
    case 'n':
        return end - at >= 4 && memcmp(at, "null", 4) == 0 ? at + 4 : NULL;
    default:
        return skip_number(at);
    }
}

/* Note where the value of a member is. 1: done, 0: the key is there twice, or escaped; -1: an error is set. */
static int add_member(PyObject *members, Place text, Place key, Place key_end, Place value, Place value_end)
{
    if (memchr(key, '\\', (size_t)(key_end - key)) != NULL)
        return 0;
    Py_ssize_t before = PyDict_Size(members);
    PyObject *name = PyUnicode_FromStringAndSize((const char *)key, key_end - key);
    PyObject *span = Py_BuildValue("(nn)", value - text, value_end - text);
    int failed = name == NULL || span == NULL || PyDict_SetItem(members, name, span) < 0;
    Py_XDECREF(name);
    Py_XDECREF(span);
    return failed ? -1 : PyDict_Size(members) > before;
}

/* Fill `members` from the text of an object. 1: done, 0: it needs a closer look, -1: an error is set. */
static int read_members(PyObject *members, Place text, Place end, Py_ssize_t max_depth)
{
    unsigned char closing[MAX_DEPTH]; /* of everything that is open */
    Py_ssize_t depth = 0;
    Place key = NULL, key_end = NULL, value = NULL;
    Place at = skip_space(text);
    if (*at != '{')
        return 0;
    for (;;) {
        /* Here a value begins. */
        if (depth == 1)
            value = at;
        if (*at == '{' || *at == '[') {
            if (depth == max_depth)
                return 0;
            closing[depth++] = *at == '{' ? '}' : ']';
            at = skip_space(at + 1);
            if (*at != closing[depth - 1]) {
                if (*at == ',')
                    return 0;
                goto next;
            }
            at++;
            depth--;
        }
        else if ((at = skip_scalar(at, end)) == NULL)
            return 0;
        /* Here one has ended, and with it, perhaps, what it is in. */
        for (;;) {
            if (depth == 0)
                return skip_space(at) == end;
            if (depth == 1) {
                int added = add_member(members, text, key, key_end, value, at);
                if (added != 1)
                    return added;
            }
            at = skip_space(at);
            if (*at == ',')
                break;
            if (*at != closing[depth - 1])
                return 0;
            at++;
            depth--;
        }
        at = skip_space(at + 1);
    next:
        if (closing[depth - 1] == '}') {
            if (*at != '"')
                return 0;
            Place name = at + 1;
            if ((at = skip_string(name, end)) == NULL)
                return 0;
            if (depth == 1) {
                key = name;
                key_end = at - 1;
            }
            at = skip_space(at);
            if (*at != ':')
                return 0;
            at = skip_space(at + 1);
        }
    }
}

static PyObject *scan(PyObject *module, PyObject *arguments)
{
    char *text;
    Py_ssize_t size, max_depth;
    PyObject *body;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "Sn:scan", &body, &max_depth) || PyBytes_AsStringAndSize(body, &text, &size) < 0)
        return NULL;
    PyObject *members = PyDict_New();
    if (members == NULL)
        return NULL;
    Place start = (Place)text;
    if (max_depth > MAX_DEPTH)
        max_depth = MAX_DEPTH;
    int found = max_depth < 1 ? 0 : read_members(members, start, start + size, max_depth);
    if (found == 1)
        return members;
    Py_DECREF(members);
    if (found < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *fold(PyObject *module, PyObject *arguments)
{
    const uint64_t odd = 0x9E3779B97F4A7C15u;
    unsigned long long seed;
    Py_buffer data;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*K:fold", &data, &seed))
        return NULL;
    uint64_t hash = seed ^ (uint64_t)data.len * odd;
    Place at = data.buf, end = at + data.len;
    for (; end - at >= 32; at += 32) {
        for (int part = 0; part < 32; part += 8) {
            uint64_t word;
            memcpy(&word, at + part, 8);
            hash = (hash ^ word) * odd;
            hash = hash << 29 | hash >> 35;
        }
    }
    for (; at < end; at++)
        hash = (hash ^ *at) * odd;
    PyBuffer_Release(&data);
    return PyLong_FromUnsignedLongLong(hash ^ hash >> 32);
}

static PyMethodDef methods[] = {
    {"scan", scan, METH_VARARGS, "scan(body: bytes, depth: int) -> dict[str, tuple[int, int]] | None"},
    {"fold", fold, METH_VARARGS, "fold(data: bytes-like, seed: int) -> int"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_scan", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__scan(void) { return PyModuleDef_Init(&definition); }
