"""False laws and facts for check-rules: built-in ones with one mistake, and claims of a user's.

    text("like terms, complex multiples", "(+ b d)", "(- b d)")     the built-in law of that name with the mistake

tests/testing/test_rulecheck.py tests all of them at three seeds, `python benchmarks/laws.py` all built-in laws, too.
"""

from __future__ import annotations

from combdiff.simplification.laws.loading import BUILT_IN, rule_directory

# The name of a built-in law, what is written there, what stands there instead.
MISTAKES = [
    # sums, products, multiples
    ("product of products", "(multiset-sum rest ns)", "rest"),
    ("sum of sums", "(multiset-sum rest ns)", "ns"),
    ("multiple of a sum in a sum", '(unstable-fn "Scale" a b)', '(unstable-fn "Scale" a $zero)'),
    ("product of two", "(Prod (multiset-of a b))", "(Prod (multiset-of a a))"),
    ("sum of two", "(Add (multiset-of a b))", "(Prod (multiset-of a b))"),
    ("once is itself", "(= b $zero)", ""),
    ("zero times is zero", "(= b $zero)", ""),
    ("multiple of a multiple", "(+ (* a d) (* b c))", "(- (* a d) (* b c))"),
    ("multiple of a number", "(- (* a c) (* b d))", "(+ (* a c) (* b d))"),
    ("multiple in a product", "(multiset-insert rest x)", "rest"),
    ("number in a product", "(Scale a b (Prod rest))", "(Scale a $zero (Prod rest))"),
    ("Σ of a multiple", "(Scale a b (Sum bs x))", "(Scale b a (Sum bs x))"),
    ("like terms, both multiples", "(+ a b)", "(- a b)"),
    ("like terms, the less one once", "(+ $one b)", "b"),
    ("like terms, one a complex multiple", "(+ a $one)", "(- a $one)"),
    ("like terms, complex multiples", "(+ b d)", "(- b d)"),
    ("sum of numbers", "(+ b d)", "b"),
    # conjugates
    ("conjugate twice", "(Conj (Conj x)) x", "(Conj (Conj x)) (Conj x)"),
    ("conjugate of a number", "(neg b)", "b"),
    ("conjugate of a multiple", "(neg b)", "b"),
    ("conjugate of a sum", '(unstable-multiset-map (unstable-fn "Conj") ms)', "ms"),
    ("conjugate of Σ", "(Sum bs (Conj v))", "(Sum bs v)"),
    # δ, Σ, substitution
    ("Σ of δ", "(Num $one $zero)", "(Num $zero $zero)"),
    ("Σ of δ", "(set-contains bs (I i k))", ""),
    ("δ meets Σ", "(set-contains bs (I i k))", ""),
    ("δ of equals", "(Delta i i k)", "(Delta i j k)"),
    ("Σ over nothing", ":when ((= bs (set-empty)))", ""),
    ("Σ of a sum", '(unstable-multiset-map (unstable-fn "Sum" bs) ms)', "ms"),
    ("replace", "(SubstIndex i j i) j", "(SubstIndex i j i) i"),
    ("keep", ":when ((!= i (I n k)))", ""),
    ("replace in a negated index", "(Neg (SubstIndex i j n))", "(SubstIndex i j n)"),
    ("replace in an access", '(unstable-vec-map (unstable-fn "SubstIndex" i j) v)', "v"),
    ("replace in an indicator", "(SubstIndex i j a)", "a"),
    ("replace in a conjugate", "(Conj (Subst i j v))", "(Subst i j v)"),
    ("replace in a multiple", "(Scale a b (Subst i j v))", "(Scale a b v)"),
    ("minus minus", "(Neg (Neg i)) i", "(Neg (Neg i)) (Neg i)"),
    # functions
    ("f(z*) = f(z)*", "(mirror f)", ""),
    ("a real function is real", "(real-valued f)", ""),
    ("the conjugate of a real number", "(real x)", ""),
    ("Re of a multiple of a real", "(= x (Conj x))", ""),
    ("Im of a multiple of a real", "(Scale b $zero x)", "(Scale a $zero x)"),
    ("Re of an imaginary multiple", "(neg b)", "b"),
    ("Im of an imaginary multiple", '(Fn "real" (vec-of x))', '(Fn "imag" (vec-of x))'),
    ("Im of a number", "(Num b $zero)", "(Num a $zero)"),
    ("Re of a real", "(= x (Conj x))", ""),
    ("Im of a conjugate", "(neg $one)", "$one"),
    ("square", "(multiset-of x x)", "(multiset-of x x x)"),
    ("power one", "(Num $one $zero)", "(Num (neg $one) $zero)"),
    ("power zero", "((union e (Num $one $zero)))", "((union e (Num $zero $zero)))"),
    ("power times base", "(+ a $one)", "a"),
    ("product of powers", "(+ a b)", "(* a b)"),
    ("the power of a half is the root", "(bigint 2)", "(bigint 3)"),
    ("x^(−½) = 1 / sqrt(x)", "(neg $one)", "$one"),
    ("sqrt(x) / x = 1 / sqrt(x)", "(vec-of s (Num (neg $one) $zero))", "(vec-of x (Num (neg $one) $zero))"),
    ("product of powers", "(raised g x b)", "(raised g y b)"),
    ("x x^(p − 1) = x^p", "(multiset-remove ps minus)", "ps"),
    ("whole power of a power", "(powered e f n)", "(raised e f n)"),
    ("reciprocal of a quotient", "(Num (* a n) $zero)", "(Num a $zero)"),
    ("cancel a factor of a denominator", "(+ n $one)", "n"),
    ("x (y/x + z) = y + x z", '"Times" x', '"Times" u'),
    ("a fraction written out", "(Num n $zero)", "(Num (neg n) $zero)"),
    ("exp of log", "(vec-get w 0)", '(Fn "exp" w)'),
    ("exp(c log z) = z^c", "(Num c $zero)", "(Num (neg c) $zero)"),
    ("square of a root", "(vec-get v 0)", '(Fn "abs" v)'),
    ("square of an absolute value", "(Conj x)", "x"),
    ("|z| sign z = z", "(vec-get v 0)", '(Fn "abs" v)'),
    ("sign z / |z| = 1 / z*", "(Conj x)", "x"),
    ("sin² + cos² = 1", "(Num $one $zero)", "(Num $zero $one)"),
    ("tan z cos z = sin z", '(Fn "sin" v)', '(Fn "cos" v)'),
    ("tanh z cosh z = sinh z", '(Fn "sinh" v)', '(Fn "tanh" v)'),
    ("cosh z / sinh z = 1 / tanh z", '(Fn "tanh" v)', '(Fn "cosh" v)'),
    ("cos z / sin z = 1 / tan z", '(Fn "tan" v)', '(Fn "cos" v)'),
    ("sinh z / tanh z = cosh z", '(Fn "cosh" v)', '(Fn "sinh" v)'),
    ("sin z / tan z = cos z", '(Fn "cos" v)', '(Fn "tan" v)'),
    ("exp(x + y) exp −x = exp y", "(multiset-remove as x)", "as"),
    ("sqrt(x²) = |x| of a real x", "(real x)", ""),
    # matrices
    ("conjugate of a multiple of a matrix", "(neg b)", "b"),
    ("transpose of a product", "(MatMul (Transposed n) (Transposed m))", "(MatMul (Transposed m) (Transposed n))"),
    ("an element of a conjugate", "(Conj (At m v))", "(At m v)"),
    ("an element of a real tensor", "(real-tensor m)", ""),
    ("inverse of a multiple", "(neg (/ b n))", "(/ b n)"),
    ("inverse of a number times a matrix", "(Num (neg $one) $zero)", "(Num $one $zero)"),
    ("conjugate of a number times a matrix", "(Conj x)", "x"),
    ("an element of a number times a matrix", "x (At m v)", "x x (At m v)"),
    ("determinant of a product", "(square m) (square n)", ""),
    ("log-determinant of a product", "(Add (multiset-of", "(Prod (multiset-of"),
    ("determinant of an inverse", "(Num (neg $one) $zero)", "(Num $one $zero)"),
    ("log-determinant of an inverse", "(neg $one)", "$one"),
    ("det X · inv X = adj X", '"adj"', '"inv"'),
    ("det Xᵀ = det X", "(of-number f)", "(of-matrix f)"),
    # facts
    ("what equals its conjugate is real", "(= x (Conj x))", "(= y (Conj x))"),
    ("a number without imaginary part is real", "(Num a $zero)", "(Num a b)"),
    ("a real multiple of a real is real", "(Scale a $zero y)", "(Scale a b y)"),
    ("a product of squares is square", "(square-over m k) (square-over n k)", "(square-over m k)"),
    ("a transposed matrix is real", "(real-tensor m)", ""),
    ("a function of a real matrix is real", "(real-tensor m)", ""),
]
CLAIMS = [
    '(rewrite (Fn "tanh" v) (Fn "sin" v))',
    '(rewrite (Fn "log" (vec-of (Fn "exp" (vec-of x)))) x)',
    '(rewrite (Fn "sqrt" (vec-of (Prod (multiset-of x x)))) x :when ((real x)))',
    '(rewrite (Fn "abs" (vec-of x)) x :when ((real x)))',
    '(rewrite (Fn "log" (vec-of (Prod (multiset-of x y)))) (Plus (Fn "log" (vec-of x)) (Fn "log" (vec-of y)))'
    " :when ((real x) (real y)))",
    '(rewrite (Times (Fn "sign" (vec-of x)) (Fn "sign" (vec-of x))) (Num $one $zero) :when ((real x)))',
    '(rewrite (Fn "minimum" (vec-of x (Num (bigrat (bigint 5) (bigint 1)) $zero))) x)',
    '(rewrite (Fn "maximum" (vec-of x (Num (bigrat (bigint -1000) (bigint 1)) $zero))) x)',
    '(rewrite (Fn "step" (vec-of x)) (Fn "heaviside" (vec-of x)))',  # but for 0
    '(rewrite (Fn "relu" (vec-of x)) (Fn "abs" (vec-of x)))',
    '(rewrite (Fn "sin" (vec-of x)) x)',  # nearly so where x is tiny
    '(rewrite (Fn "cos" (vec-of x)) (Num $one $zero))',
    "(rewrite (At (T A) (vec-of i j)) (At (T A) (vec-of j i)) :when ((antisymmetric A 0 1)))",
    "(rewrite (At (T A) (vec-of i j k)) (At (T A) (vec-of j i k)) :when ((symmetric A 1 2)))",
    "(rewrite (At (T A) (vec-of i j k)) (At (T A) (vec-of k j i)) :when ((symmetric A 0 1)))",
    "(rewrite (At (T A) (vec-of i j k)) (At (T A) (vec-of j i k)) :when ((hermitian A 0 1)))",
    "(rewrite (At (T A) (vec-of i j)) (Conj (At (T A) (vec-of j i))) :when ((symmetric A 0 1)))",  # of reals
    "(rewrite (At (T A) (vec-of i j)) (Scale (neg $one) $zero (Conj (At (T A) (vec-of j i))))"
    " :when ((antisymmetric A 0 1)))",
    '(rewrite (Conj (At (T A) v)) (At (T A) v) :when ((tensor A 2 "complex")))',
    "(rule ((= e (Conj x))) ((real x)) :ruleset facts)",
    "(rule ((= e (MatMul m n))) ((square e)) :ruleset facts)",
    "(rule ((= e (Fn f v))) ((real-valued f)) :ruleset facts)",
    '(rule ((= e (Fn "sqrt" (vec-of x))) (real x)) ((real e)) :ruleset facts)',  # x < 0 of complex type
    '(rule ((= e (Fn "log" (vec-of x))) (real x)) ((real e)) :ruleset facts)',
    '(real-valued "sin")',
    '(mirror "imag")',
    '(part "exp")',
    '(of-matrix "det")',
    '(symmetric "A" 0 1)',
    '(domain "n" "cyclic")',
    '(union (Fn "exp" (vec-of $null)) $null)',
    '(union (Fn "log" (vec-of $null)) $null)',
    "(union (Num $one $zero) (Num $one $one))",
]

TRUE = [
    '(rewrite (Fn "log" (vec-of (Fn "exp" (vec-of x)))) x :when ((real x)))',
    '(rewrite (Fn "sqrt" (vec-of (Prod (multiset-of x x)))) (Fn "abs" (vec-of x)) :when ((real x)))',
    '(rewrite (Times (Fn "exp" (vec-of x)) (Fn "exp" (vec-of y))) (Fn "exp" (vec-of (Plus x y))))',
    '(rewrite (Fn "exp" (vec-of (Add (multiset-of x y)))) (Times (Fn "exp" (vec-of x)) (Fn "exp" (vec-of y))))',
    "(rewrite (At (T A) (vec-of i j k)) (At (T A) (vec-of i k j)) :when ((symmetric A 1 2)))",
    "(rewrite (At (T A) (vec-of i j k)) (Conj (At (T A) (vec-of k j i))) :when ((hermitian A 0 2)))",
    '(rewrite (Fn "maximum" (vec-of x y)) (Fn "maximum" (vec-of y x)))',
    '(rewrite (Fn "relu" (vec-of x)) (Times x (Fn "step" (vec-of x))))',
    "(rule ((= e (Prod (multiset-of x (Conj x))))) ((real e)) :ruleset facts)",
    '(rule ((= e (Fn "exp" (vec-of x))) (real x)) ((real e)) :ruleset facts)',
    '(real-valued "abs")',
    '(mirror "sin")',
    '(union (Fn "exp" (vec-of $null)) (Num $one $zero))',
]


def mutant(name: str, old: str, new: str) -> str:
    """The built-in law of that name with a mistake in it."""
    for file in BUILT_IN:
        before, found, _ = (rule_directory() / file).read_text("utf-8").partition(f' :name "{name}")')
        if found:
            law = before[max(before.rfind(f"\n({kind} ") for kind in ("rule", "rewrite")) + 1 :]
            assert old in law, (name, old)
            head, _, tail = law.rpartition(old)
            return head + new + tail
    raise LookupError(name)


def mutants(mistakes: list[tuple[str, str, str]], others: list[str]) -> str:
    """A rule file of mutants and of other commands; the laws among them are named so that they are told apart."""
    laws = [f'{mutant(*each)} :name "{n}: {each[0]}")' for n, each in enumerate(mistakes)]
    named = [
        f'{text[:-1]} :name "{n}: {text.replace(chr(34), chr(39))}")'
        if text.startswith(("(rewrite", "(rule "))
        else text
        for n, text in enumerate(others)
    ]
    return "\n".join([*laws, *named])
