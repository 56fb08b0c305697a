#pragma once

#include <vector>

#include "models/sentence/stages/stage_kind.h"
#include "posenc/models/functional/similarity.h"

// Stages after which a text has some vectors of its tokens, and not one for each.
namespace posenc {

/// Whether texts of `task` are among those of `tasks`: texts of none are documents.
bool applies_to(const std::vector<sentence::Task>& tasks, sentence::Task task);

/// The vectors of texts of `task` after the pooling.
MultiVectors pool_tokens(const sentence::TokenPooling& pooling, sentence::Task task,
                         const MultiVectors& vectors);

namespace stages {

/// Leaves the rows of tokens for which the mask (B, L), which may be undefined, is nonzero.
void take_rows(StageFeatures& features, const at::Tensor& mask);

/// The tasks that a setting lists, or names if it is one; documents by default.
std::vector<sentence::Task> tasks_in(const Settings& config, const char* name);

}  // namespace stages
}  // namespace posenc
