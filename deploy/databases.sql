-- Roles and databases of docker-compose.yml. psql runs this as superuser at each start: it creates missing ones and sets the
-- passwords. Neither role can connect to the other's databases.
\getenv farebox_password FAREBOX_PASSWORD
\getenv temporal_password TEMPORAL_PASSWORD

select format('create role %I login', role)
from (values ('farebox'), ('temporal')) wanted (role)
where not exists (select from pg_roles where rolname = role)
\gexec

alter role farebox password :'farebox_password';
alter role temporal password :'temporal_password';

select format('create database %I owner %I', name, role)
from (values ('farebox', 'farebox'), ('temporal', 'temporal'), ('temporal_visibility', 'temporal')) wanted (name, role)
where not exists (select from pg_database where datname = name)
\gexec

revoke connect on database farebox, temporal, temporal_visibility, postgres from public;
