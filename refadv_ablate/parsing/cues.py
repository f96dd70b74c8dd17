"""The words around a box that tell its part in the answer, in the languages that models answer in.

Each table is one regular expression over at most WINDOW characters, so that reading stays linear. `BEFORE`
stands before the box (the text searched ends where the box begins), `AFTER` behind it.
"""

from __future__ import annotations

import re

WINDOW = 400
"""Characters before and behind a box that are looked at."""


def _any(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.IGNORECASE)


SENTENCE_END = re.compile(r"(?<!\bvs)(?<!\bno)(?<!\be\.g)(?<!\bi\.e)[.!?](?=[^\w.]|[^\x00-\x7f]|$)|\n|।")

# what may stand between "not" and the box it rejects: a noun phrase that begins with a determiner
_THING = (
    r"(?=(?:the|a|an|that|this|at|in|his|her|its|their|one|man|woman|person|candidate|box|option|object)\b|$)"
)

REJECTED_BEFORE = _any(
    r"\b(?:neither|nor|rather than|instead of|unlike|except(?: for)?|excluding|exclude"
    r"|other than|as opposed to|apart from"
    r"|in contrast (?:to|with)|ruled? out|rul(?:e|ing) out|reject(?:ing|ed)?|discard(?:ing"
    r"|ed)?|eliminat(?:e|ing|ed))\b",
    rf"(?:\bnot|n['’]t)(?: (?:be|at|in))? ?{_THING}",
    r"\b(?:distractors?|decoys?|rejected|wrong|incorrect|non-?target)\b",
    r"[❌✗✘🚫]",
    r"而不是|而非|并非|并不是|不是|不选|除了|排除|不同于",
    r"\b(?:nicht (?:der|die|das|den|dem|bei|um)\b|nicht ?$|statt|anstatt|anstelle|im gegensatz zu"
    r"|außer|ausgenommen)",
    r"\b(?:et non|plutôt qu\w*|au lieu d\w*|contrairement (?:à|au|aux)|sauf|n['’]est pas"
    r"|pas (?:le|la|l|à|celui|celle|un|une)\b|non pas|pas ?$)",
    r"\b(?:en lugar de|en vez de|a diferencia de|excepto|(?<=, )no|(?<=y )no|no es|no (?:el|la|al|en))\b",
    r"\b(?:em vez de|ao contrário d\w|em lugar d\w|exceto|não)\b",
    r"\b(?:invece d\w+|anziché|piuttosto che|a differenza d\w+|tranne|(?<=, )non|e non"
    r"|non (?:il|la|l|lo|è|quello|quella)\b|non ?$)",
    r"\b(?:а не|вместо|в отличие от|кроме|не ?$|не (?:мужчин|женщин|тот|та|то)\w*)",
    r"وليس|ليس|بدلا من|بدلاً من|على عكس|باستثناء",
    r"\b(?:không phải|thay vì|khác với|a nie|zamiast|w przeciwieństwie|niet (?:de|het"
    r"|die)\b|en niet|in plaats van|bukan|daripada)\b",
    r"ไม่ใช่|แทนที่",
)
REJECTED_AFTER = _any(
    r"\b(?:is|was|are|would be|['’]s)(?:n['’]t| not)(?: (?:it\b|the\b|a match|correct"
    r"|right|what|our|in question|him|her)|[.!]?$)",
    r"\b(?:is|are|was|were) (?:also |just |only |clearly |therefore )?(?:(?:a |an |the )?(?:distractor"
    r"|decoy|wrong|incorrect|mistake|mismatch)|ruled out"
    r"|excluded|rejected|eliminated|discarded|another|different|no match|not)",
    r"\b(?:does|do|did)(?:n['’]t| not) (?:match|fit|satisfy|meet|correspond)|\bfails?\b"
    r"|\bcan be (?:ruled out|excluded|rejected)"
    r"|\bcannot be\b|\bdoesn['’]t\b",
    r"不符合|不对|不是|被排除|不匹配|排除",
    r"^[\s*`]*\|\s*(?:no|false|✗|✘|❌|否)\s*\|",
    r"\b(?:ist|passt|gehört|sind) (?:\w+ )?(?:nicht|falsch|kein)|scheidet aus|n['’]est pas"
    r"|ne correspond pas|\bno es\b|no coincide|no corresponde"
    r"|\bnon è\b|non corrisponde|\bnão é\b|não corresponde|не подходит|не является|не соответствует"
    r"|не тот|لا يطابق",
)
POSTFIX = _any(
    r"ではなく|じゃなく|でなく|ではない|ではありません|の代わり|違い|이 아니|가 아니|아니라|아니고|아닌|대신",
    r"\bdeğil|\byerine|के बजाय|नहीं",
)
COMPARED_BEFORE = _any(
    r"\b(?:compared (?:with|to)|in comparison (?:with|to)|relative to|than|versus|vs\.?"
    r"|over|whereas|while)\b",
    r"相比于|相较于|比(?!例)",
    r"\b(?:im vergleich (?:zu|mit)|verglichen mit|als|par rapport (?:à|au)|comparée? (?:à"
    r"|au)|comparad[oa] con|en comparación con"
    r"|em comparação com|rispetto a\w*|по сравнению с|so với|w porównaniu z|vergeleken met)\b|مقارنة",
    # a landmark of the description, where another box stands in the same sentence
    r"\b(?:next to|beside|besides|near|behind|in front of|left of|right of|above|below"
    r"|under|beneath|on top of|between|opposite"
    r"|facing|leaning on|sitting on|standing on)\b",
)
COMPARED_AFTER = _any(
    r"^.{0,20}相比",
    r"^.{0,16}(?:と比べ|に比べ|と比較|よりも?)",
    r"^.{0,16}(?:와|과) 비교|^.{0,16}보다",
    r"की तुलना",
)
REASON_BEFORE = _any(
    r"\b(?:because|since|given that|due to|as (?:the|he|she|it)|for the (?:man|woman|one))\b",
    r"因为|由于|\b(?:weil|denn|da (?:der|die|das))\b|parce qu|\bcar\b|puisqu|\b(?:porque"
    r"|ya que|pois|perché|poiché)\b"
    r"|потому что|так как|поскольку|لأن|\bvì\b|çünkü|क्योंकि|เพราะ|\bponieważ\b|\bomdat\b",
)
SUPPOSED_BEFORE = _any(
    r"\bif\b|\b(?:would|could|might|may)(?: also| instead)? (?:have been|be)\b|\b(?:although"
    r"|though|even though|alternatively|or maybe)\b"
    r"|\b(?:at first|initially|first (?:i )?thought|i (?:first|initially)|i considered"
    r"|considered|originally|earlier)\b",
    r"如果|假如|也可能|虽然|もし|만약|\b(?:wenn|falls|könnte|si (?:la|le|el)|pourrait|podría|если|мог бы)\b",
)
WHOLE_BEFORE = _any(
    r"\b(?:whole|entire|full|complete|overall) (?:image|picture|photo|photograph|frame|scene|canvas)\b",
    r"\b(?:image|picture|photo|canvas)(?:['’]s)? (?:size|dimensions?|resolution|bounds?"
    r"|boundar\w+|extent|frame|itself|is|has|spans|ranges|covers)\b",
    r"\b(?:prior|previous|related) (?:work|studies)\b|\bliterature\b",  # a citation
    r"\bsize of the (?:image|picture|photo)\b",
    r"整张图|整个图|整幅|整个画面|全图|图(?:像|片)(?:的)?(?:范围|大小|尺寸)|画像全体"
    r"|画像のサイズ|전체 이미지|이미지 전체|이미지 크기",
    r"(?:ganze|gesamte)\w* bild|bildgröße|image entière|toute l['’]image|taille de l['’]image"
    r"|imagen (?:completa|entera)|toda la imagen"
    r"|imagem (?:inteira|completa)|intera immagine|immagine intera|вс[её] изображение"
    r"|изображение целиком|размер изображения|الصورة كاملة|الصورة بأكملها",
)
FILLS = _any(
    r"\b(?:fills?|cover(?:s|ing)?|occup\w+|takes? up|takes? in|spans?|füllt|remplit|ocupa"
    r"|llena|занимает)\b|占据|占满|覆盖|占め"
)

ANSWER_BEFORE = _any(
    r"\b(?:final|answer|correct(?! the)|conclusion|boxed|verdict|result|output)\b|\b(?:best"
    r"|likely|closest) (?:match|candidate|box)\b",
    r"[✅✔✓☑]",
    r"\bi (?:would |will |['’]ll |['’]d )?(?:pick|choose|select|go with|take|settle on|report)\b",
    r"答案|最终|正确|结果|结论|答え|回答|最終|正解|結論|정답|최종|결론|선택|(?<![\uac00-\ud7a3])답",
    r"\b(?:antwort|endgültig\w*|ergebnis|richtige\w*|korrekte?\w*|réponse|résultat|correcte?"
    r"|bonne|respuesta|resultado|correct[ao]|resposta"
    r"|risposta|corrett[ao]|antwoord|juiste|odpowiedź|cevap|yanıt|sonuç|đáp án|câu trả lời|kết quả|jawaban)",
    r"ответ|правильн|итог|верн(?:ый|ая|ое)|الجواب|الإجابة|النهائي|الصحيح|उत्तर|सही|คำตอบ|תשובה",
)
ANSWER_AFTER = _any(
    r"\b(?:is|are|was|['’]s) (?:indeed |clearly |therefore |thus |definitely |really )?(?:the )?(?:correct"
    r"|right|answer|one (?!of|on|with|that is not)|one$|target|match"
    r"|referent|final|requested|described|best|only one|intended|asked)",
    r"^(?:[^,;]{0,60}\s)?(?:match(?:es)?|remains|fits|satisfies|corresponds|meets)\b"
    r"|\b(?:asked for|being referred to|referred to)\b",
    r"^[\s*`]*\|\s*(?:yes|true|✓|✔|✅|是)\s*\|",
    r"^.{0,12}(?:是正确|符合|才是|即为|就是|是答案)|^.{0,20}(?:が正解|が答え|です.?正解)"
    r"|^.{0,20}(?:정답|맞습니다)",
    r"^.{0,40}\b(?:ist (?:die |der |das )?(?:richtig|gesucht|korrekt)|est (?:la |le )?(?:bonne?"
    r"|correcte?)|es (?:la |el )?correct|è (?:la |il )?(?:corrett|giust)"
    r"|é (?:a |o )?corret|правильн|верн(?!у))",
)
SO_BEFORE = _any(
    r"\b(?:so|thus|hence|therefore|consequently|target|referent|it (?:is|must be|should be)"
    r"|should be|must be|namely|which is|meant|asked for|described|matching)\b",
    r"因此|所以|故|而是|目标|应(?:该|为)|したがって|よって|だから|따라서|그러므로|목표",
    r"\b(?:also|daher|somit|deshalb|gesuchte?\w*|sondern|donc|ainsi|c['’]est|mais|por (?:lo )?tanto"
    r"|así que|sino|logo|portanto|quindi|perciò|dunque)\b"
    r"|следовательно|значит|поэтому|итак|إذن|لذلك|بل\b",
)
TURN = _any(
    r"\b(?:wait|actually|correction|corrected|sorry|apolog\w+|my mistake|i made a mistake"
    r"|hmm+|oops|on (?:second|closer|reflection|further)|looking (?:again|closer)"
    r"|let me (?:re|correct|refine|fix|adjust|try)|re-?check\w*|instead(?! of)|updated?"
    r"|revised|scratch that|refined)\b|\bno[,.:;!](?!\s*\d)|\bshould (?:actually |really )?be\b",
    r"等等|其实|更正|修正|不对|重新|訂正|いや|実は|すみません|やはり|待って|아니[,.]|정정|잠깐|사실",
    r"\b(?:moment|eigentlich|korrektur|attende[zs]|en fait|espera|en realidad|corrección"
    r"|perdón|na verdade|correção|espere|aspetta|in realtà|correzione"
    r"|подожди\w*|на самом деле|исправ\w+|точнее|нет,|wacht|eigenlijk|czekaj)\b|انتظر|في الواقع|تصحيح",
)
BREAK = _any(
    r"\b(?:but|however|rather|yet|while|whereas)\b|但|しかし|하지만|\b(?:aber|mais|pero|mas|ma|но|однако)\b"
)
NONE_MATCHES = _any(
    r"\b(?:none of (?:the|these|them)|neither(?: of)?|no (?:candidate|object|box|person"
    r"|one|man|woman)s?)\b[^.\n]{0,60}\b(?:match\w*|fit\w*|satisf\w+|correspond\w*|meets?"
    r"|described?)"
    r"|\bnothing (?:\w+ ){0,3}(?:match\w*|fits?)|\bno match\b",
    r"都不(?:符合|匹配|是)|没有(?:符合|匹配)|どれも|該当(?:する\S{0,6})?(?:なし|ありません)"
    r"|일치하는 .{0,10}없",
    r"\b(?:keine?r? (?:der|von|davon)\b.{0,40}(?:passt|entspricht)|aucun\w* .{0,60}correspond"
    r"|ningun\w .{0,40}(?:coincide|corresponde)|nenhum\w* .{0,40}corresponde"
    r"|nessun\w* .{0,40}corrisponde|ни один)",
)
