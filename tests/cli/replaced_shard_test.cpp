// A shard that is replaced, by renaming another one over it, while the file is converted or hashed.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cli/program.h"
#include "io/files.h"

extern char** environ;

namespace posenc::testing {
namespace {

constexpr uint64_t kFirst = uint64_t{256}
                            << 20;     // bytes of the first shard: time to replace the second
constexpr uint64_t kSecond = 200'000;  // more than is read whole when a file is opened

class ReplacedShard : public InFolder {
 protected:
  void SetUp() override {
    const auto entry = [](const std::string& name, uint64_t bytes) {
      return "{\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(bytes) +
             "],\"data_offsets\":[0," + std::to_string(bytes) + "]}}";
    };
    const auto header = crafted(entry("a", kFirst));
    write_bytes(file("a.safetensors"), header);
    std::filesystem::resize_file(file("a.safetensors"), header.size() + kFirst);  // a hole
    write_bytes(file("b.safetensors"), crafted(entry("b", kSecond), std::string(kSecond, '1')));
    write_bytes(file("other"), crafted(entry("b", kSecond), std::string(kSecond, '2')));
    write_bytes(file("m.index.json"),
                R"({"weight_map": {"a": "a.safetensors", "b": "b.safetensors"}})");
  }

  static uint64_t bytes_read(pid_t child) {
    std::ifstream stream("/proc/" + std::to_string(child) + "/io");
    std::string word;
    uint64_t value = 0;
    stream >> word >> value;  // rchar: N
    return value;
  }

  // Runs the command on the index and replaces the second shard while the first is read; its exit
  // status, or -1 where the moment was missed.
  int run(std::vector<std::string> words) const {
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, file("out").c_str(), O_CREAT | O_WRONLY, 0600);
    pid_t child = 0;
    posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    bool is_caught = false;
    int status = 0;
    const uint64_t loaded = uint64_t{96} << 20;  // far beyond what starting the program reads
    while (!is_caught && ::waitpid(child, &status, WNOHANG) == 0) {
      if (bytes_read(child) < loaded) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        continue;
      }
      ::kill(child, SIGSTOP);
      ::waitpid(child, &status, WUNTRACED);
      is_caught = WIFSTOPPED(status) && bytes_read(child) < kFirst;
      if (is_caught) std::filesystem::rename(file("other"), file("b.safetensors"));
      ::kill(child, SIGCONT);
      if (!WIFSTOPPED(status)) return -1;
      ::waitpid(child, &status, 0);
    }
    return is_caught ? WEXITSTATUS(status) : -1;
  }
};

TEST_F(ReplacedShard, ConvertWritesTheOneThatItPlannedWith) {
  const int status = run({POSENC_CLI, "convert", file("m.index.json"), file("converted")});
  if (status < 0) GTEST_SKIP() << "the machine was too busy to catch the program at work";
  if (status == 1) return;  // noticed
  std::ifstream stream(file("converted"), std::ios::binary);
  stream.seekg(-1, std::ios::end);
  EXPECT_EQ(stream.get(), '1');
}

TEST_F(ReplacedShard, InspectHashesTheOneThatItPlannedWith) {
  const auto sum =
      run_program({"/bin/sh", "-c",
                   "head -c " + std::to_string(kSecond) + " /dev/zero | tr '\\0' 1 | sha256sum"});
  const int status = run({POSENC_CLI, "inspect", "--json", file("m.index.json")});
  if (status < 0) GTEST_SKIP() << "the machine was too busy to catch the program at work";
  if (status == 1) return;  // noticed
  EXPECT_CONTAINS(read_bytes(file("out")), sum.out.substr(0, 64));
}

}  // namespace
}  // namespace posenc::testing
