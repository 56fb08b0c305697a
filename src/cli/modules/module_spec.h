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

/// The inputs of a module's forward: one tensor of the given kind, of which Embeddings has
/// positions added and Vectors any length; source and target sentences; or one or two sequences of
/// vectors.
enum class Input { Ids, Positions, Embeddings, Vectors, Timesteps, Sentences, Sequences };

/// The arguments of a forward, by name.
using Call = std::map<std::string, at::Tensor>;

/// Returns an argument, or an undefined tensor if it is absent.
at::Tensor given(const Call& call, const std::string& name);

/// A C++ module with the weights of a file.
struct ModuleSpec {
  Input input;
  std::vector<std::string> inputs;             ///< required arguments of forward
  std::map<std::string, int64_t> sizes;        ///< vocab_size, d_model, ..., from the shapes
  std::vector<std::string> optional;           ///< optional arguments of forward
  std::map<std::string, std::string> aliases;  ///< their names in scripts, mapped to these
  std::string table_key;                       ///< key of the position table, or ""
  std::vector<std::string> loaded;             ///< keys in the file
  std::vector<std::string> ignored;            ///< buffers of a script that the counterpart lacks
  bool batch_first = true;                     ///< for sequences
  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor(const Call&)> forward;

  /// (rows, d_model), or undefined.
  at::Tensor table() const;
};

/// Sets a module whose forward takes only the input.
template <typename Holder>
void set_module(Holder module, ModuleSpec& spec) {
  spec.module = module.ptr();
  spec.forward = [module](const Call& call) mutable { return module->forward(call.at("input")); };
}

/// Makes the counterpart of the module in `weights`, in eval mode. It is found by `name` (a C++
/// class or a notebook's) if given, else by the class name in the file, else by its keys if they
/// are unique. Throws CommandError if there is none or several, if keys or shapes do not match, or
/// for unknown parameters.
ModuleSpec make_module_spec(const Weights& weights, const std::string& name, const Params& params);

/// All names that --module accepts, with the class that each refers to, one per line.
std::string module_names();

}  // namespace posenc::cli
