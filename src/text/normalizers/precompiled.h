#pragma once

#include "text/component.h"
#include "text/normalizers/normalizer.h"

namespace posenc::text {

/// Precompiled: the rules of a SentencePiece model, as `tokenizers` applies them and not as
/// SentencePiece does.
NormalizerPtr make_precompiled(const Component& component);

}  // namespace posenc::text
