#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/params.h"
#include "cli/weights.h"

namespace posenc::cli {

/// What a module's forward takes: one tensor of such a kind, a sentence and another, or one or two
/// sequences of vectors.
enum class Input { Ids, Positions, Embeddings, Timesteps, Sentences, Sequences };

/// The arguments of a forward, by name.
using Call = std::map<std::string, at::Tensor>;

/// An argument, or an undefined tensor.
at::Tensor given(const Call& call, const std::string& name);

/// A C++ module with the weights of a file.
struct ModuleSpec {
  Input input;
  std::vector<std::string> inputs;             ///< the tensors that forward needs
  std::map<std::string, int64_t> sizes;        ///< vocab_size, d_model, ...: as the shapes say
  std::vector<std::string> optional;           ///< which further tensors forward takes
  std::map<std::string, std::string> aliases;  ///< a script's names of these: the ones here
  std::string table_key;             ///< of the table of positions; "" where there is none
  std::vector<std::string> loaded;   ///< keys, the file's
  std::vector<std::string> ignored;  ///< buffers of a script that the counterpart lacks
  bool batch_first = true;           ///< of sequences
  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor(const Call&)> forward;

  /// (rows, d_model), or undefined.
  at::Tensor table() const;
};

/// The counterpart of the module in `weights`, in eval mode: by `name` (a C++ class or a
/// notebook's) where it is given, else by the class name in the file, else by keys where they are
/// unique. Refuses what has none or several, keys and shapes that do not fit, and unknown
/// parameters.
ModuleSpec make_module_spec(const Weights& weights, const std::string& name, const Params& params);

/// Every name that --module takes, with the class that it stands for, a line each.
std::string module_names();

}  // namespace posenc::cli
