#pragma once

namespace torch::nn {
class Module;
}

namespace posenc::train {

/// Whether a module or one below it is an embedding that a group splits with RankTokens::Same, and
/// so takes all processes to pass the same tokens. Shares of a batch are not the same.
bool expects_same_tokens(const torch::nn::Module& module);

}  // namespace posenc::train
