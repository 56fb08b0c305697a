#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "posenc/core/module_ref.h"
#include "posenc/weights/error.h"
#include "posenc/weights/key_map.h"
#include "posenc/weights/state_dict.h"

namespace posenc POSENC_EXPORT {

struct LoadReport;

/// An adapter of PEFT, and how much of it is added to its model.
struct AdapterFolder {
  std::string folder;  ///< with adapter_config.json and the adapter's tensors
  double scale = 1.0;  ///< what its change of the weights is multiplied by
};

/// Relaxations of the default strict load.
struct LoadOptions {
  /// Selects the names that begin with this prefix, including its dot ("model.encoder."), and
  /// strips it. Other names are taken to belong to other modules and are ignored.
  TORCH_ARG(std::string, prefix) = "";
  /// Renames, drops, transposes or packs tensors of the file.
  TORCH_ARG(KeyMap, key_map);
  /// Accepts a file without some of the module's tensors.
  TORCH_ARG(bool, allow_missing) = false;
  /// Accepts a file with tensors that the module does not have. The loaders of models' folders,
  /// such as load_encoder(), accept most of them without it (docs/weights.md).
  TORCH_ARG(bool, allow_unexpected) = false;
  /// Converts to the module's dtype: among floating-point types, among complex types, and from an
  /// integer type to one that holds all of its values. Otherwise another dtype is an error.
  TORCH_ARG(bool, cast) = false;
  /// Reads all tensors into separate memory before changing the module, so that it stays unchanged
  /// even after a read error. Needs as much memory again as the weights.
  TORCH_ARG(bool, staged) = false;
  /// Adapters of PEFT (posenc/models/lora.h) that are merged into the weights while they are
  /// loaded: for loaders of models' folders, such as load_encoder().
  TORCH_ARG(std::vector<AdapterFolder>, adapters) = {};
  /// The folder of the model to which an adapter's folder belongs that is loaded in place of a
  /// model's; unless set, the one that the adapter names. For loaders of models' folders.
  TORCH_ARG(std::string, base) = "";
  /// Where the report of the load is put, for loaders that return something else: a pointer to the
  /// caller's, or null.
  TORCH_ARG(std::add_pointer_t<LoadReport>, report) = nullptr;
};

/// The comparison of a table in the file with the one that the module can compute
/// (StateDictTraits).
struct TableReport {
  std::string name;         ///< its name in the module
  int64_t rows = 0;         ///< number of rows in the module, which does not change
  int64_t file_rows = 0;    ///< number of rows in the file; only rows that both have are compared
  double max_abs = 0.0;     ///< largest absolute difference from the computed rows
  bool as_computed = true;  ///< whether the difference can be due to rounding on another machine
};

/// The result of a load. Names are complete: those of the module in `loaded`, `missing` and `cast`,
/// those of the file in `unexpected` and `ignored`. If the module has several names for a tensor,
/// one of them in the file is enough.
struct LoadReport {
  std::vector<std::string> loaded;      ///< loaded from the file
  std::vector<std::string> missing;     ///< in the module, but not in the file
  std::vector<std::string> unexpected;  ///< in the file, but not in the module
  /// Non-persistent in the module, or dropped by the map; of a model's folder also what
  /// transformers ignores, buffers of old releases and other heads.
  std::vector<std::string> ignored;
  std::vector<std::string> cast;  ///< converted to the module's dtype
  /// Patterns of the key map that none of the file's names took, in the order of the map: none
  /// matches it, or an earlier pattern took all that do.
  std::vector<std::string> unused_patterns;
  std::vector<TableReport> tables;  ///< all computed tables in the file
};

/// Loads the weights in `path` into `module`, in any format that read_manifest() supports, or from
/// a folder of safetensors shards as torch.distributed.checkpoint writes it on any number of
/// processes.
///
/// Names, shapes, dtypes and ties are checked before the module is changed. A single WeightsError
/// begins with the cause, such as a prefix, shows ten missing, unexpected and mismatched tensors of
/// each kind, and has all of them in details(). Devices, requires_grad and
/// the identity of the module's tensors are preserved. A table that is longer or shorter in the
/// file is accepted if the common rows agree with the module's recipe. Tensors of the module that
/// overlap in memory have to agree where they do. A file without the `num_batches_tracked` of a
/// BatchNorm, as PyTorch before 0.4.1 wrote it, leaves the module's as it is. After these checks a
/// load can only fail if the file cannot be read, shrinks, or is written to while it is read, or if
/// memory is short; the details of the error then list what has been written.
///
/// Errors: WeightsError.
LoadReport load_weights(const ModuleRef& module, const std::string& path,
                        const LoadOptions& options = {});

/// load_weights() from tensors in memory, on any device.
LoadReport load_state_dict(const ModuleRef& module, const StateDict& tensors,
                           const LoadOptions& options = {});

/// Loads all tensors in `path`, in any format, to the CPU, in the file's order and with nested
/// names joined by dots. Tensors that share memory in the file also share it here; strides are
/// preserved. Objects that are no tensors are skipped.
///
/// Errors: WeightsError, also for a tensor that cannot be read (EntryKind::Unreadable).
StateDict load_tensors(const std::string& path);

}  // namespace posenc
