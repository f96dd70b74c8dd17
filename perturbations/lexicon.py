"""Words whose role a small parser can't be trusted with: place, body, material, degree."""

from __future__ import annotations


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


PLACE_ADJECTIVES = _set(
    "left right upper lower top bottom front back rear middle center centre central leftmost rightmost "
    "topmost bottommost uppermost lowermost frontmost backmost nearest farthest furthest closest "
    "foreground background midground near far outer inner outermost innermost mid corner side"
)
"""Where something is; before a noun each of them is a descriptor, whatever the parser says."""

PLACE_NOUNS = _set(
    "side row part half corner end edge position left right top bottom middle center centre front back "
    "rear foreground background midground area section portion distance direction way image picture "
    "photo photograph frame scene view camera viewer shot column line level side-view"
)
"""Without their modifier they say nothing ("on the left side" → "on the side")."""

BODY_NOUNS = _set(
    "hair face eye eyes arm arms hand hands leg legs head back body skin foot feet finger fingers mouth "
    "nose ear ears torso neck shoulder shoulders chest knee knees hip hips build expression posture pose "
    "stance haircut hairstyle hairline beard chin jaw forehead brow wing wings tail fur coat paw paws "
    "horn horns beak feathers shape size color colour look tone side edge look posture gaze gesture smile"
)
"""What everything of its kind has: without its modifier it describes nothing ("with hair")."""

PARTITIVES = _set(
    "one ones slice piece pair group set bunch row stack part side half kind type number couple lot "
    "bit end top bottom front back left right middle center centre rest cluster pile bowl glass cup "
    "bottle box bag plate can basket loaf head display cut first second third fourth fifth sixth last "
    "two three four five"
)
"""Nouns whose "of" belongs to them: what follows is what is meant."""

MATERIALS = _set(
    "wood metal plastic glass leather brick stone steel paper cardboard rubber cotton silk wool denim "
    "lace velvet concrete marble gold silver bronze copper iron brass ceramic porcelain straw wicker"
)
COLORS = _set(
    "red orange yellow green blue purple pink brown black white gray grey beige tan maroon magenta cyan "
    "teal turquoise violet navy khaki cream crimson scarlet lavender indigo olive peach"
)
TEXTURES = _set(
    "stripe striped plaid polka checkered checked floral pattern patterned short long tuxedo-style"
)

ATTRIBUTIVE_NOUNS = PLACE_ADJECTIVES | MATERIALS | COLORS | TEXTURES
"""Before a noun they describe it, though the parser may call them part of a compound."""

DEGREES = _set(
    "more most less least very slightly fairly rather quite too much bit extremely fully partially "
    "partly mostly nearly almost entirely highly clearly directly just immediately farther further "
    "somewhat marginally noticeably even far way not"
)
"""What goes with the word that it grades."""

ALONE_VERBS = _set(
    "standing sitting seated walking running lying laying leaning swimming jumping smiling sleeping "
    "hanging parked crouching kneeling playing skiing bending squatting flying eating drinking working "
    "talking posing resting dancing surfing grazing floating swinging stands sits walks runs lies leans "
    "kneels crouches laughing speaking singing performing reading cycling skating skateboarding "
    "snowboarding standing-up waving"
)
"""Verbs that say something without what follows them ("standing near the car" → "standing")."""

PERSONS = _set(
    "person man woman boy girl child kid baby people men women children lady guy player performer "
    "human skier surfer rider worker skater snowboarder jockey pedestrian dancer singer musician "
    "competitor athlete actor actress soldier officer policeman bride groom chef waiter student "
    "dog cat bear horse cow sheep elephant giraffe zebra bird animal mammal"
)
PERSON_VERBS = _set(
    "wearing holding facing standing sitting walking looking carrying riding playing talking kneeling "
    "leaning smiling running using eating drinking pointing touching dressed seated showing"
)
"""A clause with one of them is about a person or animal, not about the garment before it."""

ORDINALS = _set(
    "first second third fourth fifth sixth seventh eighth ninth tenth last 1st 2nd 3rd 4th 5th 6th 7th 8th"
)
BETWEEN = _set("between among amongst amid")
"""Prepositions that need all of what they name."""
NOUNS_TAKEN_FOR_VERBS = _set("rose")
"""Nouns that look like a past tense."""
SHADES = _set("dark light bright pale deep")
"""What goes with the colour after it."""

WORN = _set(
    "glasses sunglasses eyeglasses goggles hat cap helmet mask beard mustache moustache bag backpack tie "
    "scarf gloves jacket coat hood headband necklace watch"
)
"""What a person is with or without, whatever noun stands before."""

AFTER_COMMA = (
    _set("not but with without less more wearing holding at in on near located standing sitting facing whose")
    | ORDINALS
)
"""Words that open a part of their own after a comma."""

NEVER_ALONE = _set("other same such own few fewer only")
"""Attributes without which the rest says something else, or nothing."""

STANDING_VERBS = _set("sits appears looks seems stands lies")
"""Verbs by which a clause at the end says where or how the head is."""

PLACING = _set("in on at near behind beside under inside outside above below among with without by next")
"""Prepositions whose phrase can follow a noun as well as a verb."""
