#pragma once

#include "tokenizers/folder/class_builder.h"

namespace posenc::text {

/// Replaces the expression that cuts words where the folder sets `fix_mistral_regex`, as
/// transformers does: for large vocabularies beside a config.json of a Mistral model, or of none,
/// that an older transformers than 5.0 has written.
void fix_mistral_regex(ClassBuilder& builder);

}  // namespace posenc::text
