"""One `sparkmirror serve` process.

The process has the storage topics, the lease, the herder, and HTTP on each listener.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from contextlib import ExitStack

from starlette.types import ASGIApp

from sparkmirror import __version__
from sparkmirror.config import ClusterConfig
from sparkmirror.connect.api import build_api, routers
from sparkmirror.connect.basic_auth import BasicAuth, Users
from sparkmirror.connect.body_limit import BodyLimit
from sparkmirror.connect.config_log import ConfigState
from sparkmirror.connect.connector_model import ConnectorRunner
from sparkmirror.connect.forwarding import Forwarding
from sparkmirror.connect.herder import Herder
from sparkmirror.connect.loggers import Loggers
from sparkmirror.connect.manners import Manners
from sparkmirror.connect.status_log import StatusState
from sparkmirror.connect.storage_topic import StorageTopic, Take
from sparkmirror.connect.worker_properties import WorkerConfig
from sparkmirror.errors import ConfigError
from sparkmirror.events import Event
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.tls_contexts import server_context, ssl_context
from sparkmirror.mirror.engine.lease import Lease
from sparkmirror.web.listener import Listener, listening, serving

log = logging.getLogger(__name__)


class ConnectServer:
    """REST server that answers while its context is open.

    `worker` runs the connectors while this process has the lease. `mounted` has applications by the first part of their
    paths, which each process answers for itself, such as metrics. Raises `ConfigError` if the file asks for basic
    authentication and `users` is None, since the server would let in every client.
    """

    def __init__(
        self,
        config: WorkerConfig,
        worker: ConnectorRunner,
        users: Users | None = None,
        mounted: Mapping[str, ASGIApp] | None = None,
    ) -> None:
        if config.basic_auth and users is None:
            reason = (
                "asks for users, but no user was read, so that every client would be let in:"
                " name a JAAS file in KAFKA_OPTS, or with --jaas"
            )
            raise ConfigError(reason, origin=config.path, key="rest.extension.classes")
        self._config = config
        self._worker = worker
        self._users = users
        self._mounted = mounted or {}
        self._opened = ExitStack()

    def __enter__(self) -> ConnectServer:
        """Open the topics and listen.

        Raises `ClusterUnreachable`, and `ConfigError` for a listener that can't be opened.
        """
        try:
            self._open()
        except BaseException:
            self._opened.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _open(self) -> None:
        config = self._config
        sockets = [self._opened.enter_context(listening(listener, config.path)) for listener in config.listeners]
        config_state, status_state, loggers = ConfigState(), StatusState(), Loggers()
        configs = self._storage(config.configs.topic, config_state.take)
        statuses = self._storage(config.statuses.topic, status_state.take)
        configs.create(1, config.configs.replication_factor, "config.storage.replication.factor")
        status_partitions = config.statuses.partitions
        statuses.create(status_partitions, config.statuses.replication_factor, "status.storage.replication.factor")
        configs.start()
        statuses.start()
        lease = Lease(config.cluster, config.group_id, config.configs.topic, config.session_timeout_ms)
        herder = Herder(
            self._worker,
            configs,
            statuses,
            config_state,
            status_state,
            lease.held,
            config.url,
            loggers.set,
            config.resolve,
            config.loadable,
        )
        app = self._application(herder, loggers)
        lease.start()
        self._opened.callback(lease.release)
        herder.start()
        self._opened.callback(herder.close)
        for socket, listener in zip(sockets, config.listeners, strict=True):
            self._opened.enter_context(serving(app, socket, self._tls(listener), config.trusted))
        log.info(
            "answering at %s",
            ", ".join(listener.url for listener in config.listeners),
            extra=Event.REST_LISTENING.extra,
        )

    def _storage(self, name: str, take: Take) -> StorageTopic:
        topic = StorageTopic(self._config.cluster, name, take)
        self._opened.callback(topic.close)
        return topic

    def _application(self, herder: Herder, loggers: Loggers) -> ASGIApp:
        config = self._config
        client = ClusterClient(config.cluster, "sparkmirror-connect")
        client.metadata([config.configs.topic])
        client.close()
        paths = routers(
            herder,
            loggers if config.admin else None,
            client.cluster_id,
            f"sparkmirror-{__version__}",
            topic_tracking=config.topic_tracking,
            topic_reset=config.topic_reset,
        )
        api = build_api(paths)
        app: ASGIApp = Forwarding(api, lambda: herder.leads, lambda: herder.leader_url, config.url, self._client_tls)
        app = Manners(
            app,
            [route for router in paths for route in router.routes],
            config.cross_origin,
            config.response_headers,
            self._mounted,
        )
        app = BodyLimit(app)
        return app if self._users is None else BasicAuth(app, self._users)

    def _tls(self, listener: Listener) -> ssl.SSLContext | None:
        if listener.scheme != "https" or self._config.https is None:
            return None
        return server_context(self._https_cluster(), self._config.client_auth)

    def _client_tls(self) -> ssl.SSLContext:
        """Return the TLS context for requests to other processes, from the same stores."""
        context = ssl_context(self._https_cluster())
        return context if context is not None else ssl.create_default_context()

    def _https_cluster(self) -> ClusterConfig:
        https = self._config.https
        return self._config.cluster.model_copy(
            update={"alias": "listeners.https", "security_protocol": "SSL", "ssl": https}
        )
