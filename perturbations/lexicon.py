"""Closed lists of words whose role a small parser can't be trusted with: place, body, garments, degree."""

from __future__ import annotations


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# ── how people write in a hurry ─────────────────────────────────────────────────────────────────

SHORT_FORMS = {
    "w/": "with", "w": "with", "w/o": "without", "w/out": "without", "wo": "without", "&": "and", "u": "you",
    "thats": "that",
    "blk": "black", "blck": "black", "wht": "white", "grn": "green", "brn": "brown", "yllw": "yellow",
    "lft": "left", "rt": "right", "rght": "right", "btm": "bottom", "bttm": "bottom", "frt": "front",
    "bk": "back", "bg": "background", "mid": "middle", "ctr": "center", "pic": "picture", "tv": "television",
    "lil": "little", "lrg": "large", "sm": "small", "wearin": "wearing", "lookin": "looking",
    "holdin": "holding", "sittin": "sitting", "standin": "standing", "facin": "facing",
    "nxt": "next", "clsest": "closest", "btwn": "between", "ppl": "people", "dude": "man", "chick": "woman",
    "gal": "woman", "bro": "man", "umpire": "man", "ump": "man", "batter": "man", "catcher": "man",
    "sitted": "seated", "rite": "right", "frnt": "front", "jckt": "jacket",
}  # fmt: skip
"""How a short or odd form is read; the text itself keeps it."""

# ── closed classes ──────────────────────────────────────────────────────────────────────────────

DETERMINERS = _set(
    "a an the this these those each every any some another all both no his her its their my your our "
    "whichever one's either"
)
RELATIVES = _set("who whom whose which that where")
CONJUNCTIONS = _set("and or but nor & /")
NEGATIONS = _set("not n't never neither nor no without non hardly nobody nothing none cannot")
AUXILIARIES = _set(
    "is are was were be been being has have had having does do did can could will would should may might "
    "isn't aren't doesn't don't hasn't haven't wasn't weren't"
)
PREPOSITIONS = _set(
    "of in on at to from with without by near nearest for between among amongst behind beside besides above "
    "below under underneath over across against along alongside around into onto through toward towards "
    "beneath beyond inside outside within off per than as like atop amid amidst via before after until "
    "opposite past throughout upon up down out next about despite except during since side"
) - _set("side nearest")
PARTICLES = _set("up down out off away over back forward together apart in on around straight open along")
"""What can follow a verb without an object of its own."""
DEGREES = _set(
    "more most less least very slightly fairly rather quite too much bit extremely fully partially "
    "partly mostly nearly almost entirely highly clearly directly just immediately farther further "
    "somewhat marginally noticeably even far way relatively seemingly mainly a-bit"
)
"""What goes with the word that it grades."""

# ── place ───────────────────────────────────────────────────────────────────────────────────────

PLACE_ADJECTIVES = _set(
    "left right upper lower top bottom front back rear middle center centre central leftmost rightmost "
    "topmost bottommost uppermost lowermost frontmost backmost nearest farthest furthest closest "
    "foreground background midground near far outer inner outermost innermost mid corner side nearer "
    "left-most right-most hindmost center-left center-right left-side right-side"
)
"""Where something is; before a noun each of them is a descriptor, whatever the parser says."""
PLACE_NOUNS = _set(
    "side sides row part half corner end edge position left right top bottom middle center centre front back "
    "rear foreground background midground area section portion distance direction way image picture "
    "photo photograph frame scene view camera viewer shot column line level side-view mid-ground margin "
    "rightmost leftmost mid-left mid-right center-left center-right us you me"
)
"""Nouns that name a place in the picture; without their modifier they say nothing."""
SIDES = _set(
    "left right top bottom middle center centre front back rear foreground background midground distance "
    "side corner edge"
)
"""Nouns of place that locate the referent on their own ("on the left")."""
PLACING = _set(
    "in on at near behind beside under inside outside above below among next by between along to against "
    "across from over around beneath atop"
)
ORDINALS = _set(
    "first second third fourth fifth sixth seventh eighth ninth tenth last 1st 2nd 3rd 4th 5th 6th 7th 8th "
    "9th 10th"
)
COMPARATIVES = _set(
    "closer closest nearer nearest farther farthest further furthest higher highest lower lowest taller "
    "tallest larger largest smaller smallest bigger biggest more most less least"
)
BETWEEN = _set("between among amongst amid")
"""Prepositions that need all of what they name."""

# ── kinds of things ─────────────────────────────────────────────────────────────────────────────

ANIMATES = _set(
    "person man woman boy girl child kid baby toddler infant people men women children kids lady ladies guy "
    "guys player performer human adult male female teen teenager skier surfer rider worker skater "
    "snowboarder jockey pedestrian dancer singer musician guitarist drummer competitor athlete actor actress "
    "soldier officer policeman bride groom chef chief waiter student spectator observer attendee passenger "
    "hiker cyclist biker driver bearer fighter runner swimmer signer participant cowboy holder reader friend "
    "dude pitcher goalie referee mother father mom dad son daughter couple audience other others someone one "
    "ones figure figures dog dogs cat cats bear bears horse horses cow cows cattle sheep goat goats elephant "
    "elephants giraffe giraffes zebra zebras bird birds animal animals mammal duck ducks goose geese chicken "
    "turkey alpaca alpacas penguin penguins camel ostrich owl leopard leopards lion tiger monkey seal seals "
    "dolphin crocodile turtle sparrow magpie rabbit pig pony puppy kitten lamb calf doll teddy character us "
    "him them her"
) - _set("pitcher one ones figure other others him them her us")
"""Who can wear, hold and look."""
WORN = _set(
    "shirt t-shirt top blouse sweater hoodie jacket coat vest cardigan suit tuxedo tux dress skirt jeans "
    "pants "
    "trousers shorts trunks briefs uniform costume outfit clothes clothing outerwear cloth robe gown "
    "jersey kit polo "
    "turtleneck tunic kebaya lingerie sportswear swimwear bikini brassiere socks sock shoes shoe sneakers "
    "boots boot sandals hat cap helmet beanie headscarf scarf headband crown mask glasses sunglasses "
    "eyeglasses goggles tie necktie bowtie necklace bracelet watch wristwatch gloves glove belt apron "
    "backpack headphones earrings coverings tee sweatshirt pullover leggings overalls wetsuit "
    "headphone heels hood veil sombrero shades attire garment"
) - _set("watch-face")
"""Garments and the like: what follows them tells of the one who wears them."""
BODY = _set(
    "hair face eye eyes arm arms hand hands leg legs head back body skin foot feet finger fingers mouth "
    "nose ear ears torso neck shoulder shoulders chest knee knees hip hips build expression posture pose "
    "stance haircut hairstyle hairline beard mustache moustache chin jaw jawline forehead brow wing wings "
    "tail fur paw paws "
    "horn horns beak feathers gaze gesture smile look palm palms lap waist wrist lips lip cheek ponytail "
    "muzzle silhouette profile thumb nails bristles hands teeth tongue belly trunk tusks ankle cut grip"
)
"""What everything of its kind has: without its modifier it describes nothing ("with hair")."""
PARTS = BODY | _set(
    "sleeve sleeves spoke spokes heel heels brim hem collar strap straps neckline hub rim color colour "
    "shape size tone door doors lid seat"
)
"""Nouns that, with an adjective before them, make one attribute of the next noun ("short sleeve T-shirt")."""
PATTERNS = _set(
    "stripes stripe print pattern patterns logo logos text letters lettering number numbers design dots "
    "collar hood sleeves sleeve trim accents buttons button zipper motif patch graphic graphics letter word "
    "words pocket pockets writing branding fringe hem neckline straps star stars flowers markings lenses "
    "lens "
    "crest artwork drawing image icon picture checks band bands lines badge name brim embroidery"
)
"""What garments and things carry on them."""
MATERIALS = _set(
    "wood wooden metal plastic glass leather brick stone steel paper cardboard rubber cotton silk wool denim "
    "lace velvet concrete marble gold silver bronze copper iron brass ceramic porcelain straw wicker knit "
    "human"
)
COLORS = _set(
    "red orange yellow green blue purple pink brown black white gray grey beige tan maroon magenta cyan "
    "teal turquoise violet navy khaki cream crimson scarlet lavender indigo olive peach gold silver blond "
    "blonde reddish bluish greenish yellowish grayish greyish brownish purplish blackish whitish"
)
TEXTURES = _set("stripe striped stripy plaid polka checkered checked floral pattern patterned tuxedo-style")
SHADES = _set(
    "dark light bright pale deep neon pure near off lime sky darker lighter brighter deeper warm cool "
    "neutral "
    "soft"
)
"""What goes with the colour after it."""
ATTRIBUTIVE_NOUNS = PLACE_ADJECTIVES | MATERIALS | COLORS | TEXTURES
"""Before a noun they describe it, though the parser may call them part of a compound."""
PARTITIVES = _set(
    "one ones slice piece pair group set bunch row stack part side half kind type number lot bit end top "
    "bottom front back left right middle center centre rest cluster pile bowl glass cup bottle box bag plate "
    "can basket loaf head display cut first second third fourth fifth sixth last two three four five "
    "leftmost rightmost lower upper higher taller shorter smaller larger bigger couple all"
)
"""Nouns whose "of" belongs to them: what follows is what is meant."""
NEVER_ALONE = _set(
    "other same such own few fewer only single whole entire very exact many several two three four five six "
    "seven eight nine ten 2 3 4 5 6 real"
)
"""Attributes without which the rest says something else, or nothing."""

COMPOUND_ENDS = _set(
    "haired colored coloured clothed skinned shirted faced eyed sized shaped uniformed looking facing "
    "eaten handed shaven "
    "legged sleeved toned filled haired-looking style type"
)
"""What makes one attribute with the word before it ("blonde haired", "front facing")."""
TOOLS = _set("hand hands mouth foot feet trunk paw paws tongue finger fingers arms teeth beak")
"""Parts with which something is done ("covering its eyes with its hands")."""
FIELDS = _set("left right foreground background middle distance")
"""Places in the picture that no hand rests on."""
GROUPS = _set("two three four five both others all")
"""Words for several of a kind: what follows them may tell of all."""

# ── verbs ───────────────────────────────────────────────────────────────────────────────────────

PERSON_VERBS = _set(
    "wearing holding standing sitting seated walking looking carrying riding playing talking kneeling "
    "smiling running using eating drinking touching dressed crouching crouched squatting clapping applauding "
    "singing dancing speaking driving pushing pulling reading bending bent leaning jumping swimming "
    "posing wears holds carries clothed gripping browsing throwing cutting cooking working having"
)
"""A clause with one of them is about a person or animal, not about the garment or thing before it."""
ALONE_VERBS = _set(
    "standing sitting seated walking running lying laying leaning leaned swimming jumping smiling sleeping "
    "hanging parked crouching crouched kneeling playing skiing bending bent squatting flying eating drinking "
    "working talking posing resting dancing surfing grazing floating swinging stands sits walks runs lies "
    "leans kneels crouches laughing speaking singing performing reading cycling skating skateboarding "
    "snowboarding waving centered clustered moving turned occluded cropped blurred tilted folded raised"
)
"""Verbs that say something without what follows them ("standing near the car" → "standing")."""
TRANSITIVE = _set(
    "wearing holding carrying riding using pushing pulling showing containing touching eating having "
    "displaying featuring covering gripping crossing boarding driving wears holds has"
)
NOUNS_TAKEN_FOR_VERBS = _set(
    "rose kebaya cardigan pair shadow rigging railing lettering clothing seating trim dumpling head hub "
    "spoke building frosting icing oven painting coverings wrinkling opening bud handle crown topping"
)
"""Nouns that look like a verb."""
NAMES_OF_THINGS = frozenset(
    {
        "hot dog",
        "hot dogs",
        "french fries",
        "french fry",
        "stuffed animal",
        "stuffed animals",
        "remote control",
    }
)
"""Names of which the adjective is no descriptor."""
OWNERS = _set("guys mans womans girls boys kids ladys persons childs dudes players babys")
"""People whose apostrophe was left out before a part of the body ("guys arm")."""
STATES = _set(
    "bald dirty unmade empty asleep awake broken ripe unripe uncut whole wet dry clean messy folded "
    "unfolded blurry fuzzy shiny muddy rusty naked shirtless barefoot pregnant chubby skinny skinnier "
    "slim fat upside-down uneaten unlit lit furry fluffy wooden"
)
"""What a parser may take for a noun where it follows one ("bed on right unmade")."""
LOCATIVE = _set(
    "standing sitting seated lying laying located placed facing looking leaning hanging parked positioned "
    "visible turned walking hidden shown seen kneeling riding moving"
)
"""Verbs to which a place after them belongs ("not standing on the left")."""
DIRECTED = _set(
    "looking facing pointing turned turning leaning heading going moving walking running tilted glancing "
    "staring flying gazing turning headed swimming driving"
)
"""Verbs whose "left" and "right" is a direction and no place in the picture ("looking left")."""
INTRANSITIVE = _set(
    "standing sitting seated lying laying leaning leaned swimming jumping smiling sleeping hanging parked "
    "crouching crouched kneeling bent bending squatting grazing floating resting dancing laughing crying "
    "yawning frowning posing skiing surfing snowboarding skateboarding running blooming perched laid"
)
"""Verbs after which a noun is no object ("sitting black shirt")."""
POSED = _set(
    "up down out open closed raised lifted lowered spread crossed folded extended outstretched together "
    "apart tucked showing visible shut off upright forward"
)
"""How a part is held or set ("arms crossed", "with lid up")."""
