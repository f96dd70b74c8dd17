"""Making a Ref-Adv of one's own: from annotated images to verified expressions with hard distractors.

Stages, each a command that leaves files behind and goes on where it stopped:

    prepare ▶ scenes.jsonl ▶ judge ▶ judged.jsonl ▶ compose ▶ composed.jsonl
    composed.jsonl + authored.jsonl (author) ▶ verify ▶ answers.jsonl ▶ export ▶ a data set · cost · audit
"""
