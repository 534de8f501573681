"""How the contributions of the causes are estimated: the one place where that is chosen.

Another way is a module beside this one and a line here: see `docs/recipes/change_a_share.md`.
"""

from causeway.causal.effects.contributions import TOTAL_EFFECT, ShareMethod

SHARE_METHOD: ShareMethod = TOTAL_EFFECT
