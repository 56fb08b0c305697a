#include "support/python.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

extern char** environ;

namespace posenc::testing {
namespace {

/// The process that runs python.py; it ends when its standard input is closed.
class Server {
 public:
  Server() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) throw std::runtime_error("no socket");
    for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    for (const int descriptor : {0, 1})
      posix_spawn_file_actions_adddup2(&files, ends[1], descriptor);
    std::string words[] = {POSENC_PYTHON, "-B", "-W", "ignore",
                           POSENC_TESTS_DIR "/support/python.py"};
    char* arguments[] = {words[0].data(), words[1].data(), words[2].data(),
                         words[3].data(), words[4].data(), nullptr};
    const int failed = posix_spawn(&pid_, arguments[0], &files, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    socket_ = ends[0];
    if (failed) throw std::runtime_error(std::string("cannot start ") + POSENC_PYTHON);
  }
  ~Server() {
    close(socket_);
    waitpid(pid_, nullptr, 0);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// The exit status of the script in `folder`, or nothing if the process itself has ended.
  std::string run(const std::string& folder) {
    const std::string line = folder + "\n";
    if (::write(socket_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) return "";
    std::string answer;
    for (char one = 0; ::read(socket_, &one, 1) == 1 && one != '\n';) answer += one;
    return answer;
  }

 private:
  int socket_ = -1;
  pid_t pid_ = 0;
};

}  // namespace

::testing::AssertionResult run_python(const TempDir& dir, const std::string& script) {
  static Server server;
  std::ofstream(dir / "script.py") << script;
  const std::string status = server.run(dir.path().string());
  if (status == "0") return ::testing::AssertionSuccess();
  std::ifstream log(dir / "python.log");
  return ::testing::AssertionFailure() << "exit status " << status << ": "
                                       << std::string(std::istreambuf_iterator<char>(log), {});
}

bool python_has(const std::string& modules) {
  const TempDir dir;
  return static_cast<bool>(run_python(dir, "import " + modules));
}

}  // namespace posenc::testing
