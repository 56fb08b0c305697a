// Folders of safetensors shards in the layout of torch.distributed.checkpoint, also as Python's
// processes write them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "posenc/weights/load.h"
#include "posenc/weights/safetensors.h"
#include "posenc/weights/save.h"
#include "support/python.h"
#include "weights/files.h"
#include "weights/support.h"
#include "weights/tied_model.h"

namespace posenc::testing {
namespace {

using Code = WeightsErrorCode;

std::string shard_path(const std::string& folder, int number) {
  return fmt::format("{}/shard-{:05}-model-00001-of-00001.safetensors", folder, number);
}

// The shards of a filled model: `table` and `bias` by rows, as DTensor's Shard(0) splits them, and
// the rest in the first file.
void save_shards(const std::string& folder, int64_t ranks) {
  std::filesystem::create_directory(folder);
  TiedModel model;
  model.fill(0.5);
  const StateDict whole = state_dict(model);
  const int64_t most = (TiedModel::kRows + ranks - 1) / ranks;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const int64_t first = std::min(rank * most, TiedModel::kRows);
    const int64_t rows = std::min(most, TiedModel::kRows - first);
    StateDict tensors;
    std::string offsets;
    for (const auto& item : whole) {
      const std::string& name = item.key();
      const bool is_split = name != "matrix" && name != "count";
      if (is_split ? rows == 0 : rank > 0) continue;
      tensors.insert(name, is_split ? item.value().narrow(0, first, rows) : item.value());
      std::string begins;
      for (int64_t axis = 0; axis < item.value().dim(); ++axis)
        begins += fmt::format("{}{}", axis > 0 ? "," : "", is_split && axis == 0 ? first : 0);
      offsets += fmt::format(R"({}"{}":{{"saved_offsets":[{}]}})", offsets.empty() ? "" : ",", name,
                             begins);
    }
    if (tensors.is_empty()) continue;
    save_tensors(shard_path(folder, static_cast<int>(rank) + 1), tensors,
                 SaveOptions().metadata(
                     {{"DCP_SHARDING_INFO", "{" + offsets + "}"}, {"DCP_VERSION", "1.0"}}));
  }
}

void expect_loaded(const std::string& folder) {
  TiedModel expected;
  expected.fill(0.5);
  for (const bool staged : {false, true}) {
    TiedModel model;
    load_weights(model, folder, LoadOptions().staged(staged));
    EXPECT_TRUE(all_bits(model) == all_bits(expected)) << folder;
  }
}

TEST(ShardFolder, OfAnyNumberOfProcessesIsRead) {
  const TempDir dir;
  for (const int ranks : {1, 2, 3, 8}) {  // with 8, the last one has no rows
    const std::string folder = dir / std::to_string(ranks);
    save_shards(folder, ranks);
    expect_loaded(folder);
  }
}

// Tensors that a key map turns are read from several files as from one.
TEST(ShardFolder, IsReadThroughAKeyMapAndACast) {
  const TempDir dir;
  save_shards(dir / "c", 3);
  struct Turned : torch::nn::Module {
    at::Tensor turned =
        register_parameter("turned", at::zeros({TiedModel::kWidth, TiedModel::kRows}, at::kDouble));
  } model;
  TiedModel whole;
  whole.fill(0.5);
  const KeyMap map = {{KeySource::transposed("table"), "turned"},
                      {"output.table", ""},
                      {"bias", ""},
                      {"matrix", ""},
                      {"count", ""}};
  for (const bool staged : {false, true}) {
    load_weights(model, dir / "c", LoadOptions().key_map(map).cast(true).staged(staged));
    EXPECT_TRUE(model.turned.equal(whole.table.t().to(at::kDouble)));
    const at::NoGradGuard no_grad;
    model.turned.zero_();
  }
}

TEST(ShardFolder, WithShardsThatAreNotAllIsRefused) {
  namespace fs = std::filesystem;
  const TempDir dir;
  const auto refused = [&](const std::string& folder) {
    TiedModel model;
    const auto error = error_of([&] { load_weights(model, folder); });
    EXPECT_TRUE(model.table.equal(at::zeros_like(model.table))) << "nothing is changed";
    return error;
  };
  const auto changed = [&](const std::string& name, const std::string& info) {
    fs::copy(dir / "whole", dir / name);
    auto file = load_safetensors(shard_path(dir / name, 2));
    file.metadata["DCP_SHARDING_INFO"] = info;
    save_safetensors(shard_path(dir / name, 2), file.tensors, file.metadata);
    return refused(dir / name);
  };
  save_shards(dir / "whole", 3);
  fs::copy(dir / "whole", dir / "lacking");
  fs::remove(shard_path(dir / "lacking", 2));
  EXPECT_EQ(refused(dir / "lacking").code(), Code::Shard);
  EXPECT_CONTAINS(refused(dir / "lacking").what(), "lacks some of its shards");
  fs::copy(dir / "whole", dir / "doubled");
  fs::copy(shard_path(dir / "doubled", 2), shard_path(dir / "doubled", 9));
  EXPECT_CONTAINS(refused(dir / "doubled").what(), "has shards that overlap");
  const auto other =
      changed("other", R"({"table":{"saved_offsets":[20,0]},"bias":{"saved_offsets":[3]},
                           "output.table":{"saved_offsets":[3,0]}})");
  EXPECT_CONTAINS(other.what(), "lacks some of its shards");
  for (const char* info : {"[]", R"({"table":{}})", R"({"table":{"saved_offsets":[3]}})",
                           R"({"table":{"saved_offsets":[-3,0]}})",
                           R"({"table":{"saved_offsets":[9000000000000000000,0]}})", "{"}) {
    fs::remove_all(dir / "bad");
    EXPECT_EQ(changed("bad", info).code(), Code::Corrupt) << info;
  }
  fs::create_directory(dir / "empty");
  EXPECT_EQ(refused(dir / "empty").code(), Code::NotRegular);
}

// A part of a larger table is no table.
TEST(ShardFolder, OfAnotherModelIsRefused) {
  const TempDir dir;
  save_shards(dir / "whole", 2);
  std::filesystem::create_directory(dir / "part");
  std::filesystem::copy(shard_path(dir / "whole", 1), dir / "part");
  TiedModel model;
  const auto error = error_of([&] { load_weights(model, dir / "part"); });
  EXPECT_EQ(error.code(), Code::ShapeMismatch);
  EXPECT_CONTAINS(error.what(), "'table' must have shape (7, 16). Got (4, 16)");
}

// Written by processes of Python as DTensors: split by rows, by columns, and replicated.
TEST(ShardFolder, OfPythonIsRead) {
  ASSERT_TRUE(python_has("torch.distributed.checkpoint, safetensors")) << POSENC_PYTHON;
  const TempDir dir;
  TiedModel whole;
  whole.fill(0.5);
  save_weights(whole, dir / "whole.safetensors");
  write_bytes(dir / "rank.py", R"(
import os, sys, torch
from safetensors.torch import load_file
from torch.distributed import barrier, checkpoint, init_process_group, destroy_process_group
from torch.distributed.checkpoint import HuggingFaceStorageWriter
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
rank, size = int(sys.argv[1]), int(sys.argv[2])
init_process_group("gloo", init_method="file://" + os.path.abspath(f"store{size}"), rank=rank, world_size=size)
mesh = init_device_mesh("cpu", (size,))
how = {"table": Shard(0), "output.table": Shard(1), "bias": Shard(0), "matrix": Shard(1)}
state = {name: distribute_tensor(tensor, mesh, [how.get(name, Replicate())])
         for name, tensor in load_file("whole.safetensors").items()}
checkpoint.save(state, storage_writer=HuggingFaceStorageWriter(path=f"python{size}", save_distributed=True))
barrier()
destroy_process_group()
os._exit(0)  # Gloo's threads may outlive the interpreter, which then ends with an abort
)");
  ASSERT_TRUE(run_python(dir, R"(
import subprocess, sys
for size in 2, 3:
    ranks = [subprocess.Popen([sys.executable, "-W", "ignore", "rank.py", str(rank), str(size)]) for rank in range(size)]
    assert [rank.wait(120) for rank in ranks] == [0] * size
)"));
  for (const char* size : {"2", "3"}) expect_loaded(dir / ("python" + std::string(size)));
}

// That many cannot all be open at once.
TEST(ShardFolder, ManyShardsNeedFewDescriptors) {
  constexpr int64_t kShards = 300, kWidth = 33000;  // a small file is read at once and closed
  const TempDir dir;
  torch::nn::Linear expected(torch::nn::LinearOptions(kWidth, kShards).bias(false));
  for (int64_t i = 0; i < kShards; ++i) {
    StateDict row;
    row.insert("weight", expected->weight.detach().narrow(0, i, 1));
    const auto info = fmt::format(R"({{"weight":{{"saved_offsets":[{},0]}}}})", i);
    save_tensors(shard_path(dir.path().string(), static_cast<int>(i) + 1), row,
                 SaveOptions().metadata({{"DCP_SHARDING_INFO", info}, {"DCP_VERSION", "1.0"}}));
  }
  torch::nn::Linear layer(torch::nn::LinearOptions(kWidth, kShards).bias(false));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{290, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  try {
    load_weights(layer, dir.path().string());
  } catch (const WeightsError& error) {
    ADD_FAILURE() << error.what();
  }
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(layer->weight.equal(expected->weight));
}

}  // namespace
}  // namespace posenc::testing
