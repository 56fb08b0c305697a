// A file that is overwritten in place, keeping its size, while it is read: the result would be a
// mixture of two states.
#include <ATen/ATen.h>
#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include "posenc/weights/safetensors.h"
#include "weights/convert.h"
#include "weights/load/load_all.h"
#include "weights/load/load_plan.h"
#include "weights/load/source.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

constexpr int64_t kMany = 100'000;  // more bytes than are read when a file is opened

constexpr const char* kWritten = "has been written to while it was read";

class Overwritten : public ::testing::Test {
 protected:
  Overwritten() {
    save(1, path_);
    save(2, other_);
    module_.register_buffer("first", at::zeros({kMany}));
    module_.register_buffer("second", at::zeros({kMany}));
  }
  static void save(float value, const std::string& path) {
    StateDict tensors;
    tensors.insert("first", at::full({kMany}, value));
    tensors.insert("second", at::full({kMany}, value));
    save_safetensors(path, tensors);
  }
  // As rsync --inplace does.
  void overwrite() const {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a tick of the file's clock
    const auto bytes = read_bytes(other_);
    const int file = ::open(path_.c_str(), O_WRONLY);
    EXPECT_EQ(::pwrite(file, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    ::close(file);
  }

  TempDir dir_;
  const std::string path_ = dir_ / "m.safetensors", other_ = dir_ / "other";
  torch::nn::Module module_;
};

// The source of a file that is overwritten after the first tensor has been copied.
class Interrupted : public io::FileSource {
 public:
  Interrupted(const std::string& path, std::function<void()> after)
      : FileSource(path), after_(std::move(after)) {}
  void copy_to(std::size_t index, const at::Tensor& target) const override {
    FileSource::copy_to(index, target);
    if (after_) std::exchange(after_, nullptr)();
  }

 private:
  mutable std::function<void()> after_;
};

TEST_F(Overwritten, ALoadSaysSoAndNamesWhatIsWritten) {
  const Interrupted source(path_, [this] { overwrite(); });
  const io::LoadPlan plan(module_, source, {});
  const auto error = error_of([&] { plan.apply(); });
  EXPECT_EQ(error.code(), WeightsErrorCode::Io);
  EXPECT_CONTAINS(error.what(), kWritten);
  EXPECT_CONTAINS(error.what(), "2 tensors of the module had been written");
  EXPECT_EQ(error.details().written, (std::vector<std::string>{"first", "second"}));
}

TEST_F(Overwritten, AStagedLoadLeavesTheModule) {
  const io::FileSource source(path_);
  io::LoadPlan plan(module_, source, {});
  overwrite();
  EXPECT_CONTAINS(error_of([&] { plan.stage(); }).what(), kWritten);
  EXPECT_TRUE(at::equal(module_.named_buffers()["first"], at::zeros({kMany})));
}

TEST_F(Overwritten, LoadTensorsSaysSo) {
  const io::OpenWeights weights(path_);
  overwrite();
  EXPECT_CONTAINS(error_of([&] { io::all_tensors(weights); }).what(), kWritten);
}

TEST_F(Overwritten, ConvertWritesNothing) {
  const io::OpenWeights weights(path_);
  const auto error = error_of([&] {
    bool is_first = true;
    io::write_as_safetensors(weights, dir_ / "out", [&](uint64_t, uint64_t) {
      if (std::exchange(is_first, false)) overwrite();
    });
  });
  EXPECT_CONTAINS(error.what(), kWritten);
  EXPECT_EQ(error.file(), path_);
  EXPECT_EQ(dir_.entries(), 2u) << "out is not there";
}

TEST_F(Overwritten, AFileThatStaysIsRead) {
  const io::OpenWeights weights(path_);
  EXPECT_EQ(io::all_tensors(weights).size(), 2u);
  weights.check_unchanged();
}

}  // namespace
}  // namespace posenc::testing
